"""Live load in memory: a frame tells each node's devices apart, also after a node changed their number."""

from __future__ import annotations

from typing import Any

from evenflow.core.probing.load_frame import unpack
from evenflow.events.contracts.agent import DeviceLoad, NodeHeartbeat
from evenflow.inventory.load import LiveRows, SiteLoad


def beat(node: str, *used_milli: int) -> NodeHeartbeat:
    devices = [DeviceLoad(used_milli=used) for used in used_milli]
    return NodeHeartbeat.of(devices, node=node, session="s", at_ms=0, running_count=len(devices))


def shown(load: SiteLoad) -> dict[str, list[Any]]:
    """Used devices by node, as a reader of the frame works them out: from one node's first to the next's."""
    frame = unpack(load.packed())
    firsts = [*frame.nodes["first"].tolist(), len(frame.devices)]
    used = frame.devices["used_milli"].tolist()
    return {name: used[firsts[row] : firsts[row + 1]] for row, name in enumerate(frame.names)}


def test_each_nodes_devices_stand_behind_those_of_the_node_before() -> None:
    """Nodes with and without devices, heard once or often."""
    load = SiteLoad()
    for number, heard in enumerate([beat("n1", 10, 20), beat("n2"), beat("n3", 30), beat("n1", 11, 21)]):
        load.put(heard, now_ms=number)
    assert shown(load) == {"n1": [11, 21], "n2": [], "n3": [30]}


def test_a_node_that_comes_back_with_other_devices_moves_nobody_elses() -> None:
    """More, fewer and none: the others keep their readings, and what is gone takes no room."""
    load = SiteLoad()
    for heard in (beat("n1", 1, 2), beat("n2", 3, 4), beat("n3", 5)):
        load.put(heard, now_ms=0)
    load.put(beat("n1", 6, 7, 8, 9), now_ms=1)
    assert shown(load) == {"n1": [6, 7, 8, 9], "n2": [3, 4], "n3": [5]}
    load.put(beat("n2", 10), now_ms=2)
    load.put(beat("n1"), now_ms=3)
    load.put(beat("n3", 11), now_ms=4)
    assert shown(load) == {"n1": [], "n2": [10], "n3": [11]}
    assert len(unpack(load.packed()).devices) == 2


def test_only_sites_that_changed_are_written_until_the_store_may_have_lost_them() -> None:
    """A quiet site costs nothing; after a failed write every site is written again."""
    rows = LiveRows()
    rows.put("west", beat("w1"), now_ms=0)
    rows.put("east", beat("n1", 5), now_ms=0)
    assert [site for site, _ in rows.take_changed()] == ["east", "west"]
    rows.put("west", beat("w1"), now_ms=1)
    assert [site for site, _ in rows.take_changed()] == ["west"]
    assert rows.take_changed() == []
    rows.mark_all_changed()
    assert [site for site, _ in rows.take_changed()] == ["east", "west"]
