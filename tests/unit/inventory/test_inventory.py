"""Inventory as others see it: what it registers, refuses, suspects, gives up and takes back."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.node import Administration, DeviceState, Reach
from evenflow.core.probing.load_frame import unpack
from evenflow.core.probing.sequence import Freshness, SequenceWindow
from evenflow.core.units import QUANTITY_MAX
from evenflow.events import streams
from evenflow.events.contracts.agent import DeviceLoad, NodeAnnounced, NodeHeartbeat, TransferFailed, TransferFinished
from evenflow.events.contracts.console import (
    DatasetAddRequested,
    DocumentPublished,
    NodeCordonRequested,
    NodeRevokeRequested,
)
from evenflow.events.contracts.inventory import DatasetChanged, NodeChanged, NodeRefused, NodeStatus
from evenflow.events.contracts.platform import AlertBody, AlertCleared, AlertRaised
from evenflow.events.envelope import AgentStamp
from evenflow.inventory.registry import HEARTBEATS_REMEMBERED_MAX, WINDOWS_PER_NODE_MAX, NodeEntry
from evenflow.inventory.settings import InventorySettings
from evenflow.platform.broker.codec import Fact
from evenflow.testkit.pool import Pool, run


def announced(node: str, site: str = "east", session: str = "s1", **fields: Any) -> Fact:
    document = {"id": node, "site": site, "devices": {"model": "t4", "count": 2}} | fields
    body = NodeAnnounced(node=node, session=session, document=document, agent_version="0.1")
    return Fact(streams.TELEMETRY, body)


def beat(node: str, sequence: int, session: str = "s1", used_milli: int = 0, state: str = "ok") -> Fact:
    devices = (DeviceLoad(used_milli=used_milli, state=DeviceState(state)), DeviceLoad())
    body = NodeHeartbeat.of(devices, node=node, session=session, at_ms=sequence)
    return Fact(streams.TELEMETRY, body, stamp=AgentStamp(node, session, sequence))


async def newest(pool: Pool, node: str) -> NodeStatus:
    found = [body for body in await pool.bodies(streams.NODES, NodeStatus) if body.node == node]
    return found[-1]


def test_an_announced_node_is_registered_open_and_heard() -> None:
    """A good announcement becomes one state record that stands alone."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        status = await newest(pool, "n1")
        assert (status.reach, status.administration, len(status.devices)) == (Reach.OK, Administration.OPEN, 2)
        assert (await pool.documents.get("nodes", "n1")) is None
        await pool.pass_s(2)
        assert (await pool.documents.get("nodes", "n1")) is not None

    run(story)


def test_the_key_that_a_node_proved_stands_in_its_state() -> None:
    """Gateways know a node again from the log: a key learnt later is added, an announcement without one keeps it."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        assert (await newest(pool, "n1")).public_key == ""
        known: Any = announced("n1").body
        await pool.publish(Fact(streams.TELEMETRY, known.model_copy(update={"public_key": "ab" * 32})))
        assert (await newest(pool, "n1")).public_key == "ab" * 32
        await pool.publish(announced("n1", cpu=8))
        assert (await newest(pool, "n1")).public_key == "ab" * 32

    run(story)


def test_a_node_that_promises_what_is_planned_is_refused_by_its_field() -> None:
    """Slices of devices do nothing yet: they are named at the door instead of accepted and ignored."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        devices = {"model": "a100-80g", "count": 1, "slices": [{"profile": "1g.10gb", "count": 4}]}
        await pool.publish(announced("n1", devices=devices))
        refused = await pool.bodies(streams.NODES, NodeRefused)
        assert [(body.node, body.path) for body in refused] == [("n1", "devices.slices")]
        assert await pool.bodies(streams.NODES, NodeStatus) == []

    run(story)


def test_a_bad_announcement_is_refused_by_its_field_and_nothing_else_moves() -> None:
    """R04: a node with negative or non-finite size never joins."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"), announced("nx", cpu=-4), announced("n2", memory="x"))
        refused = await pool.bodies(streams.NODES, NodeRefused)
        assert sorted((body.node, body.path) for body in refused) == [("n2", "memory"), ("nx", "cpu")]
        assert [body.node for body in await pool.bodies(streams.NODES, NodeStatus)] == ["n1"]
        assert await pool.dead_letters(streams.TELEMETRY) == []

    run(story)


def test_a_silent_node_is_suspect_then_lost_and_waits_out_its_hold_off_when_back() -> None:
    """Silence is judged by the receiver's clock, and a node back from being lost takes no work at once."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory", hold_off_ms=60_000)
        await pool.publish(announced("n1"), announced("n2", site="west"))
        for second in range(1, 40):
            await pool.publish(beat("n2", second))
            await pool.pass_s(0.95)
            if second == 20:
                assert (await newest(pool, "n1")).reach is Reach.SUSPECT
        assert (await newest(pool, "n1")).reach is Reach.LOST
        await pool.publish(beat("n1", 1))
        status = await newest(pool, "n1")
        assert status.reach is Reach.OK
        assert status.returning_until_ms > pool.clock.now_ms()
        for second in range(2, 70):
            await pool.publish(beat("n1", second), beat("n2", 100 + second))
            await pool.pass_s(0.95)
        assert (await newest(pool, "n1")).returning_until_ms == 0
        raised = [(a.TYPE, a.name, a.subject) for a in await pool.bodies(streams.ALERTS, AlertBody)]
        wanted = [("alert.raised", "node.suspect"), ("alert.raised", "node.lost")]
        wanted += [("alert.cleared", "node.suspect"), ("alert.cleared", "node.lost")]
        assert sorted((str(t), str(n)) for t, n, s in raised if s == "n1") == sorted(wanted)

    run(story)


def test_an_alert_that_outlives_a_restart_is_raised_once_and_cleared_once() -> None:
    """A process knows again from the log which alerts stand: lost, a restart, and back give one of each."""

    async def story(pool: Pool) -> None:
        async def silent_but_one(first: int, last: int) -> None:
            for second in range(first, last):
                await pool.publish(beat("n2", second))
                await pool.pass_s(0.95)

        await pool.start("inventory")
        await pool.publish(announced("n1"), announced("n2", site="west"))
        await silent_but_one(1, 40)
        assert (await newest(pool, "n1")).reach is Reach.LOST
        await pool.stop("inventory")
        await pool.start("inventory")
        await silent_but_one(40, 80)
        await pool.publish(beat("n1", 1))
        assert (await newest(pool, "n1")).reach is Reach.OK
        told = [(str(a.TYPE), str(a.name)) for a in await pool.bodies(streams.ALERTS, AlertBody) if a.subject == "n1"]
        assert sorted(told) == [
            ("alert.cleared", "node.lost"),
            ("alert.cleared", "node.suspect"),
            ("alert.raised", "node.lost"),
            ("alert.raised", "node.suspect"),
        ]

    run(story)


def test_a_node_that_placement_closed_is_quarantined_with_its_reason_until_it_is_cleared() -> None:
    """R41: whoever looks at the node sees why it gets no work; a word about nobody changes nothing."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        told = {"name": Alert.NODE_QUARANTINED, "subject": "n1", "at_ms": 1}
        await pool.publish(Fact(streams.ALERTS, AlertRaised(**told | {"subject": "nobody"})))
        await pool.publish(Fact(streams.ALERTS, AlertRaised(**told)))
        status = await newest(pool, "n1")
        assert (status.health, status.health_reason) == ("quarantined", "start-failures")
        await pool.publish(Fact(streams.ALERTS, AlertCleared(**told)))
        status = await newest(pool, "n1")
        assert (status.health, status.health_reason) == ("ok", None)
        assert await pool.dead_letters(streams.ALERTS) == []

    run(story)


def test_two_sites_silent_together_blind_the_observer_and_freeze_expiry() -> None:
    """When everybody falls silent at once the fault is ours: nothing is lost, one alert says why."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"), announced("n2", site="west"))
        await pool.pass_s(120)
        assert (await newest(pool, "n1")).reach is Reach.SUSPECT
        alerts = [str(a.name) for a in await pool.bodies(streams.ALERTS, AlertBody)]
        assert alerts.count("observer.blind") == 1
        assert "node.lost" not in alerts
        await pool.publish(beat("n1", 1), beat("n2", 1))
        await pool.pass_s(2)
        assert (await newest(pool, "n1")).reach is Reach.OK

    run(story)


def test_an_operators_word_survives_a_restart_and_a_word_about_nobody_is_parked() -> None:
    """Administration is rebuilt from the own stream; a request for an unknown node goes to the dead letters."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="n1")))
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="nobody")))
        assert len(await pool.dead_letters(streams.REQUESTS)) == 1
        await pool.stop("inventory")
        await pool.start("inventory")
        await pool.publish(announced("n1", session="s2"))
        status = await newest(pool, "n1")
        assert (status.administration, status.session) == (Administration.CORDONED, "s2")

    run(story)


def test_a_revoked_node_stays_out() -> None:
    """After a revocation the same node is refused, whatever it announces."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        await pool.publish(Fact(streams.REQUESTS, NodeRevokeRequested(node="n1")))
        await pool.publish(announced("n1", session="s2"))
        assert (await newest(pool, "n1")).revoked
        assert [body.node for body in await pool.bodies(streams.NODES, NodeRefused)] == ["n1"]

    run(story)


def test_a_replayed_number_with_other_bytes_changes_nothing_and_raises_an_alert() -> None:
    """Same sequence and bytes is a no-op; same sequence, other bytes is somebody else speaking."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"), beat("n1", 1), beat("n1", 1))
        assert await pool.bodies(streams.ALERTS, AlertBody) == []
        await pool.publish(beat("n1", 1, used_milli=900, state="broken"))
        assert [str(a.name) for a in await pool.bodies(streams.ALERTS, AlertBody)] == ["node.identity"]
        assert all(device.state is DeviceState.OK for device in (await newest(pool, "n1")).devices)

    run(story)


def test_few_heartbeats_of_a_session_are_remembered_and_older_ones_refused() -> None:
    """Found: a thousand of each session, which at one every few seconds took an hour to be reached."""
    windows: dict[str, SequenceWindow] = {}
    entry = NodeEntry(status=None, description=None, last_ms=0, windows=windows)  # type: ignore[arg-type]  # not asked
    for session in range(10):
        window = entry.window(f"s{session}")
        for sequence in range(HEARTBEATS_REMEMBERED_MAX + 100):
            assert window.judge(sequence, b"x") is Freshness.FRESH
        assert window.judge(1, b"x") is Freshness.TOO_OLD
        assert len(window._seen) == HEARTBEATS_REMEMBERED_MAX
    assert len(windows) == WINDOWS_PER_NODE_MAX


def test_a_broken_device_is_published_and_live_load_is_packed_per_site() -> None:
    """Device states reach placement; loads reach one frame a site with the newest values."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"), announced("n2", site="west"))
        await pool.publish(beat("n1", 1, used_milli=250), beat("n2", 1), beat("n1", 2, used_milli=750, state="broken"))
        assert [d.state for d in (await newest(pool, "n1")).devices] == [DeviceState.BROKEN, DeviceState.OK]
        await pool.pass_s(2)
        frames = await pool.live.frames(["east", "west"])
        frame = unpack(frames["east"][2])
        assert frame.names == ("n1",)
        assert frame.devices["used_milli"].tolist() == [750, 0]

    run(story)


def test_a_kept_copy_joins_the_catalogue_and_a_missing_one_leaves_it() -> None:
    """Only counted, whole transfers make a copy; a source that has none loses its entry."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        document = {"id": "d", "size": 1000, "copies": [{"site": "east", "authoritative": True}]}
        await pool.publish(Fact(streams.REQUESTS, DatasetAddRequested(dataset="d", document=document)))
        fields: dict[str, Any] = {
            "dataset": "d",
            "from_site": "east",
            "tenant": "default",
            "task": "t",
            "attempt": 1,
            "member": 0,
            "queue": "q",
            "node": "n1",
            "bytes": 1000,
            "keep_copy": True,
            "took_ms": 5,
        }
        half = TransferFinished(transfer="t1", to_site="north", counted_bytes=500, **fields)
        whole = TransferFinished(transfer="t2", to_site="west", counted_bytes=1000, **fields)
        gone = TransferFailed(
            transfer="t3", to_site="south", counted_bytes=0, problem="not there", missing=True, **fields
        )
        await pool.publish(Fact(streams.TRANSFERS, half), Fact(streams.TRANSFERS, whole))
        copies = (await pool.bodies(streams.DATASETS, DatasetChanged))[-1].copies
        assert [copy.site for copy in copies] == ["east", "west"]
        await pool.publish(Fact(streams.TRANSFERS, gone))
        assert [c.site for c in (await pool.bodies(streams.DATASETS, DatasetChanged))[-1].copies] == ["west"]

    run(story)


def policy(version: int, **silence: Any) -> Fact:
    document = {"name": "default", **({"silence": silence} if silence else {})}
    return Fact(streams.POLICIES, DocumentPublished(kind="policy", name="default", version=version, document=document))


def test_a_policy_says_how_long_silence_is_borne_and_the_settings_say_what_it_leaves_out() -> None:
    """A new version counts at once, also after a restart; one without the number gives it back to the settings."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory", silence_tolerance_ms=20_000, suspect_after_ms=20_000, heartbeat_period_ms=5_000)
        await pool.publish(policy(1, tolerance_s=60), announced("n1"))
        for second in range(5):
            await pool.publish(announced("n2", session=f"s{second}"))
            await pool.pass_s(10)
        assert (await newest(pool, "n1")).reach is Reach.SUSPECT
        await pool.stop("inventory")
        await pool.start("inventory", silence_tolerance_ms=20_000, suspect_after_ms=20_000, heartbeat_period_ms=5_000)
        for second in range(4):
            await pool.publish(announced("n2", session=f"r{second}"))
            await pool.pass_s(10)
        assert (await newest(pool, "n1")).reach is Reach.SUSPECT
        await pool.publish(policy(2, hold_off_s=5), announced("n2", session="t"))
        await pool.pass_s(2)
        assert (await newest(pool, "n1")).reach is Reach.LOST
        await pool.publish(announced("n1", session="back"))
        returning_ms = (await newest(pool, "n1")).returning_until_ms - pool.clock.now_ms()
        assert 4_000 < returning_ms <= 5_000

    run(story)


@pytest.mark.parametrize("named", [{"suspect_after_ms": 60_000}, {"silence_tolerance_ms": 120_000}])
def test_limits_within_which_every_healthy_node_would_be_suspect_are_refused(named: dict[str, int]) -> None:
    """A node is heard once a period: the message names the setting and the least it may be."""
    fitting = {"heartbeat_period_ms": 60_000, "suspect_after_ms": 60_001, "silence_tolerance_ms": 120_001}
    assert InventorySettings(**fitting).suspect_after_ms == 60_001
    (name, least_ms) = next(iter(named.items()))
    with pytest.raises(ValidationError, match=f"{name} must be over {least_ms} while heartbeat_period_ms is 60000"):
        InventorySettings(**(fitting | named))


def test_suspicion_comes_well_before_loss_whatever_the_numbers_are() -> None:
    """Proves that a pool which falls silent together is seen to, also with a tolerance as short as the suspicion."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory", silence_tolerance_ms=15_000, suspect_after_ms=15_000, heartbeat_period_ms=5_000)
        await pool.publish(announced("n1"))
        await pool.pass_s(4)
        await pool.publish(announced("n2"))
        await pool.pass_s(30)
        assert {(await newest(pool, name)).reach for name in ("n1", "n2")} == {Reach.SUSPECT}

    run(story)


def test_a_node_at_the_last_revision_is_still_judged_and_administered() -> None:
    """Proves that one odd row, whoever wrote it, stops neither the periodic judging nor requests about its node."""

    async def story(pool: Pool) -> None:
        await pool.start("inventory")
        await pool.publish(announced("n1"))
        last = (await newest(pool, "n1")).model_dump() | {"revision": QUANTITY_MAX}
        await pool.publish(Fact(streams.NODES, NodeChanged(**last)))
        await pool.stop("inventory")
        await pool.start("inventory")
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="n1", reason="odd")))
        await pool.pass_s(1)
        status = await newest(pool, "n1")
        assert (status.administration, status.revision) == (Administration.CORDONED, QUANTITY_MAX)
        assert await pool.dead_letters(streams.REQUESTS) == []

    run(story)
