"""Anything at all on any topic, all services running: parked with its origin, nothing stops, good records go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenflow.events import streams
from evenflow.events.contracts.agent import NodeAnnounced
from evenflow.events.contracts.placement import TaskAssigned, TaskEnded, TaskQueued
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskSubmitted
from evenflow.events.envelope import Envelope, dataschema_of, to_headers
from evenflow.events.streams import STREAMS, Stream
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.codec import Bad, Encoded, Fact, decode
from evenflow.platform.broker.outlet import Outlet
from evenflow.testkit.examples import examples
from evenflow.testkit.pool import Pool, run

SERVICES = ("inventory", "link-probe", "placement", "billing", "checkpoint", "gateway", "console")
PARKING = [stream for stream in STREAMS if stream.dead_letters]
STATE = [stream for stream in STREAMS if not stream.dead_letters]


def _headers(stream: Stream, **changed: bytes | None) -> list[tuple[str, Any]]:
    kind = stream.carries[0] if stream.carries else "state.recorded"
    pairs: dict[str, Any] = dict(to_headers(Envelope("e1", kind, "nobody", "k", 0, dataschema_of(kind, 1), "c1")))
    return list({**pairs, **changed}.items())


def bad_records(stream: Stream) -> dict[str, tuple[bytes | None, bytes | None, list[tuple[str, Any]]]]:
    """Each kind of bad record as key, value and headers; none of them can be read on this stream."""
    plain = _headers(stream)
    other = next(kind for kind in sorted(CONTRACTS) if kind not in stream.carries)
    raw_body = stream is streams.TASKS  # a submission's body is read by the door, and refused there
    kinds: dict[str, tuple[bytes | None, bytes | None, list[tuple[str, Any]]]] = {
        "no headers": (b"k", b"{}", []),
        "a header without a value": (b"k", b"{}", [*plain, ("x", None)]),
        "a header that is not UTF-8": (b"k", b"{}", [*plain, ("x", b"\xff")]),
        "a very long header": (b"k", b"{}", [*plain, ("x", b"a" * 10_000)]),
        "too many headers": (b"k", b"{}", [*plain, *((f"x{i}", b"") for i in range(100))]),
        "no type": (b"k", b"{}", [pair for pair in plain if pair[0] != "ce_type"]),
        "an empty id": (b"k", b"{}", _headers(stream, ce_id=b"")),
        "another specification of events": (b"k", b"{}", _headers(stream, ce_specversion=b"2.0")),
        "an unknown major version": (b"k", b"{}", _headers(stream, ce_dataschema=b"urn:evenflow:x:9")),
        "a time that is none": (b"k", b"{}", _headers(stream, ce_time=b"yesterday")),
        "a sequence that is none": (b"k", b"{}", [*plain, ("node", b"n"), ("session", b"s"), ("sequence", b"-1")]),
        "a type of another stream": (
            b"k", b"{}", _headers(stream, ce_type=other.encode(), ce_dataschema=dataschema_of(other, 1).encode())
        ),
        "a key that is not UTF-8": (b"\xff\xfe", b"{}", plain),
    }  # fmt: skip
    bodies = {
        "no JSON": b"\x00\x01\xff",
        "UTF-16": '{"a": 1}'.encode("utf-16"),
        "deep nesting": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        "NaN": b'{"at_ms": NaN}',
        "a list": b"[]",
        "a text": b'"x"',
        "null": b"null",
        "wrong types": b'{"task": 1, "tenant": [], "node": {}, "queue": null, "from_site": 5}',
        "nearly a megabyte": b'{"x": "' + b"x" * 900_000 + b'"}',
        "text cut off": b'{"task": "t1',
    }
    if not raw_body:
        kinds |= {what: (b"k", body, plain) for what, body in bodies.items()}
    if not stream.compacted:
        kinds["an empty value"] = (b"k", b"", plain)
        kinds["no key"] = (None, b"{}", plain)
    return kinds


async def _everything(pool: Pool) -> Outlet:
    """All services, a site and a node, and an outsider that writes what it likes."""
    for name in SERVICES:
        await pool.start(name)
    outsider = Outlet(pool.runtime("outsider"))
    await outsider.start()
    document = {"id": "n1", "site": "east"}
    announced = NodeAnnounced(node="n1", session="s1", document=document, agent_version="0.1")
    await pool.publish(Fact(streams.TELEMETRY, announced))
    await pool.pass_s(8)
    return outsider


async def _throw(pool: Pool, outsider: Outlet, stream: Stream) -> int:
    found = bad_records(stream)
    await outsider.send([Encoded(stream.name, key, value, headers) for key, value, headers in found.values()])  # type: ignore[arg-type]  # headers without a value, on purpose
    return len(found)


async def _still_good(pool: Pool, name: str, **more: Any) -> None:
    """A task goes through all of placement, which needs its inputs to have been read to their ends."""
    await pool.publish(
        Fact(streams.TASKS, TaskSubmitted(raw=json.dumps({"id": name, **more}).encode()), key=f"default/{name}")
    )
    await pool.pass_s(3)
    said = [type(body) for body in await pool.bodies(streams.ASSIGNMENTS) if getattr(body, "task", "") == name]
    assert TaskAssigned in said or TaskQueued in said, said


async def _none_ended_and_no_lag(pool: Pool) -> None:
    for name, service in pool.services.items():
        ended = service._ended
        assert not ended.done(), (name, ended)
        for stream in STREAMS:
            lag = await service.runtime.transport.lag(f"evenflow.{name}.{stream.name}")
            assert sum(lag.values()) == 0, (name, stream.name, lag)


def test_every_bad_record_on_every_topic_is_parked_with_its_origin_and_nothing_stops():
    """Proves for every topic and every kind: exactly the unreadable records are parked, and good ones go on."""

    async def story(pool: Pool) -> None:
        outsider = await _everything(pool)
        counts = {stream.name: await _throw(pool, outsider, stream) for stream in PARKING}
        await pool.pass_s(20)
        for stream in PARKING:
            records = await pool.records(stream.name)
            bad = [f"{r.topic}/{r.partition}/{r.offset}" for r in records if isinstance(decode(r, stream), Bad)]
            letters = await pool.dead_letters(stream)
            origins = [dict(letter.headers)["x-dlq-origin"].decode() for letter in letters]
            assert len(bad) == counts[stream.name], stream.name
            assert sorted(dict.fromkeys(origins)) == sorted(bad), stream.name
            by_origin = {f"{r.topic}/{r.partition}/{r.offset}": r.value or b"" for r in records}
            for letter, origin in zip(letters, origins, strict=True):
                assert (letter.value or b"") == by_origin[origin]
                assert b": " in dict(letter.headers)["x-dlq-error"]
        await _none_ended_and_no_lag(pool)
        await _still_good(pool, "after")

    run(story)


def test_a_bad_specification_is_rejected_by_its_field_and_parks_nothing():
    """Proves the door of tasks: whatever its bytes, a submission with a readable envelope gets an answer."""

    async def story(pool: Pool) -> None:
        outsider = await _everything(pool)
        bodies = [b"\x00\xff", b"[" * 50_000, b'{"id": "x", "members": 0}', b'{"id": "x", "priority": NaN}', b"null"]
        plain = _headers(streams.TASKS)
        for number, body in enumerate(bodies):
            headers = [pair if pair[0] != "ce_id" else ("ce_id", b"e%d" % number) for pair in plain]
            await outsider.send([Encoded(streams.TASKS.name, b"default/x%d" % number, body, headers)])
        await pool.pass_s(3)
        rejected = [
            fact.body for fact in await pool.facts(streams.ASSIGNMENTS) if fact.envelope.type == "task.rejected"
        ]
        parked = await pool.dead_letters(streams.TASKS)
        assert len(rejected) + len(parked) == len(bodies)
        assert [body.problem for body in rejected if not body.problem] == []
        await _none_ended_and_no_lag(pool)
        await _still_good(pool, "after")

    run(story)


def test_well_formed_facts_about_nothing_that_exists_stop_nobody():
    """Proves that a right form is not believed: every kind of event, made up, twice, on its topic."""

    async def story(pool: Pool) -> None:
        await _everything(pool)
        made_up = examples()
        for _ in range(2):
            for stream in PARKING:
                for body in [made_up[kind] for kind in stream.carries if kind in made_up]:
                    await pool.publish(Fact(stream, body, key="" if _names_its_key(body) else "k"))
        await pool.pass_s(20)
        await _none_ended_and_no_lag(pool)
        await _still_good(pool, "after")

    run(story)


@pytest.mark.parametrize("name", ["placement", "billing"])
def test_bad_records_among_a_services_own_state_do_not_keep_it_from_taking_over(name):
    """Proves that a private topic is read as carefully: the next incarnation passes over what it can't read."""

    async def story(pool: Pool) -> None:
        outsider = await _everything(pool)
        await _still_good(pool, "before", resources={"cpu": 4000})  # it waits for a node that is not there
        for stream in [one for one in STATE if name in one.writers]:
            own = dict.fromkeys(record.key for record in await pool.records(stream.name))
            await _throw(pool, outsider, stream)
            over = [Encoded(stream.name, key, value, _headers(stream)) for key in own for value in (b"\xff", b"{}")]
            dreamt = _headers(stream, ce_type=b"task.dreamt", ce_dataschema=b"urn:evenflow:task.dreamt:1")
            await outsider.send([*over, *(Encoded(stream.name, key, b'{"a": 1}', dreamt) for key in own)])
        await pool.pass_s(2)
        await pool.stop(name)
        await pool.start(name)
        await pool.pass_s(10)
        await _none_ended_and_no_lag(pool)
        await _still_good(pool, "after")
        await pool.publish(Fact(streams.TASKS, TaskCancelRequested(tenant="default", task="before")))
        await pool.pass_s(2)
        ended = await pool.bodies(streams.ASSIGNMENTS, TaskEnded)
        assert [(body.task, str(body.end)) for body in ended] == [("before", "cancelled")]

    run(story)


def _names_its_key(body: Any) -> bool:
    from evenflow.events.keys import key_of

    return bool(key_of(body))
