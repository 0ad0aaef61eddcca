"""How a node learns what is desired of it: whole set, changes, long poll, requests."""

from __future__ import annotations

import asyncio

import pytest

from evenflow.core.lifecycle.attempt import Wish
from evenflow.events import streams
from evenflow.events.contracts.inventory import NodeInspectRequested
from evenflow.platform.broker.codec import Fact


def keys(told) -> list[tuple[str, str | None]]:
    return [(item["key"], item["desired"] and item["desired"]["wish"]) for item in told["items"]]


def test_a_new_reader_gets_its_whole_set_and_then_changes(play):
    """Proves full set, changes by revision, tombstones, and that other nodes' rows are not seen."""

    async def main(door):
        await door.join()
        await door.desire("t1")
        await door.desire("t9", node="n2")
        await door.clock.sleep(1)
        _, first = await door.call("GET", "/desired")
        assert (first["full"], keys(first)) == (True, [("default/t1/1/0", "run")])
        await door.desire("t2")
        await door.desire("t1", wish=Wish.STOP)
        await door.clock.sleep(1)
        query = f"/desired?instance={first['instance']}&revision={first['revision']}"
        _, second = await door.call("GET", query)
        assert (second["full"], keys(second)) == (False, [("default/t2/1/0", "run"), ("default/t1/1/0", "stop")])
        await door.outlet.publish(Fact(streams.DISPATCH, None, key="n1/default/t1/1/0", id="x"))
        await door.clock.sleep(1)
        _, third = await door.call("GET", f"/desired?instance={first['instance']}&revision={second['revision']}")
        assert keys(third) == [("default/t1/1/0", None)]
        _, whole = await door.call("GET", "/desired?instance=another&revision=3")
        assert (whole["full"], keys(whole)) == (True, [("default/t2/1/0", "run")])

    play(main)


def test_a_long_poll_returns_with_the_change_or_at_its_end(play):
    """Proves that waiting costs nothing and ends with the first change."""

    async def main(door):
        await door.join()
        _, first = await door.call("GET", "/desired")
        query = f"/desired?instance={first['instance']}&revision={first['revision']}&wait_ms=20000"
        before_ms = door.clock.monotonic_ms()
        _, told = await door.call("GET", query)
        assert (told["full"], told["items"], door.clock.monotonic_ms() - before_ms) == (False, [], 20_000)
        before_ms = door.clock.monotonic_ms()
        waiting = asyncio.get_running_loop().create_task(door.call("GET", query))
        await door.clock.sleep(3)
        await door.desire()
        _, told = await waiting
        assert keys(told) == [("default/t1/1/0", "run")]
        assert door.clock.monotonic_ms() - before_ms < 3_100

    play(main)


def test_a_reader_too_far_behind_gets_the_whole_set(play):
    """Proves that forgotten tombstones never leave a reader with a row that is gone."""

    async def main(door):
        await door.join()
        for number in range(3):
            await door.desire(f"t{number}")
        await door.clock.sleep(1)
        _, first = await door.call("GET", "/desired")
        for number in range(3):
            await door.outlet.publish(Fact(streams.DISPATCH, None, key=f"n1/default/t{number}/1/0", id=f"x{number}"))
        await door.clock.sleep(1)
        _, told = await door.call("GET", f"/desired?instance={first['instance']}&revision={first['revision']}")
        assert (told["full"], told["items"]) == (True, [])

    play(main, tombstones_per_node_max=1)


def test_requests_come_once_and_old_ones_not_at_all(play):
    """Proves that one-off wishes travel with the set, and that a restarted gateway does not repeat yesterday's."""

    async def main(door):
        await door.join()
        await door.outlet.publish(Fact(streams.NODE_REQUESTS, NodeInspectRequested(node="n1", request="r"), id="r1"))
        await door.clock.sleep(1)
        _, first = await door.call("GET", "/desired")
        assert [(one["id"], one["type"]) for one in first["requests"]] == [("r1", "node.inspect-requested")]
        _, second = await door.call("GET", f"/desired?instance={first['instance']}&revision={first['revision']}")
        assert second["requests"] == []
        await door.clock.sleep(120)
        await door.host.stop()
        await door.begin()
        _, third = await door.call("GET", "/desired")
        assert third["requests"] == []

    play(main)


@pytest.mark.parametrize("query", ["revision=-1", "revision=x", "wait_ms=1e3", "revision=" + "9" * 40])
def test_a_bad_query_names_its_field(play, query):
    """Proves that numbers in the query are read strictly."""

    async def main(door):
        await door.join()
        status, told = await door.call("GET", f"/desired?{query}")
        assert (status, told["error"]["path"]) == (400, query.partition("=")[0])

    play(main)


def test_objects_are_reached_for_tasks_that_are_placed_here_only(play):
    """Proves that a node reads and writes checkpoints and logs of its own tasks and nothing else."""

    async def main(door):
        await door.join()
        await door.desire("t1")
        await door.clock.sleep(1)
        mine = "/objects/checkpoints/default/t1/g000001/c000001/part-1"
        assert (await door.call("PUT", mine, b"data"))[0] == 204
        assert await door.call("GET", mine) == (200, b"data")
        status, told = await door.call("GET", "/objects?prefix=checkpoints/default/t1/")
        assert (status, told) == (200, {"paths": ["checkpoints/default/t1/g000001/c000001/part-1"]})
        assert (await door.call("DELETE", mine))[0] == 204
        assert (await door.call("GET", mine))[0] == 404
        for other in ("/objects/checkpoints/default/t2/x", "/objects/snapshots/a/b", "/objects/logs/default"):
            assert (await door.call("PUT", other, b"data"))[0] == 404
        assert (await door.call("PUT", "/objects/logs/default/t1/a1/m0/0", b"x" * 3_000))[0] == 413

    play(main, object_bytes_max=2_048)
