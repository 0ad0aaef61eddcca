"""The fleet's books: exact, idempotent, independent of the order in which nodes came."""

from __future__ import annotations

import random

import numpy as np
import pytest

from evenflow.core.errors import Conflict
from evenflow.core.fleet.columns import CPU, DEVICES, OPEN, WHOLE, Fleet
from evenflow.core.fleet.holder import Holder
from evenflow.core.fleet.touched import REMEMBERED, TouchLog
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.placement.plan import Place
from evenflow.testkit.fleets import GIB, fleet_of, node


def place(name, *devices, cpu=1_000, memory=GIB, member=0):
    return Place(member, name, "east", devices, cpu, memory, 0)


def arrays(fleet):
    view = fleet.snapshot()
    return view.amounts.tolist(), view.devices.tolist(), view.device_memory.tolist(), view.closed


def test_a_place_given_back_three_times_counts_once():
    """Proves that a duplicated end never adds capacity (R22: release booked twice opens the quota)."""
    fleet = fleet_of([node("n1", devices=8)])
    holder = Holder("t/a", 1, 0)
    assert fleet.hold(holder, place("n1", (0, 1_000)))
    assert not fleet.hold(holder, place("n1", (0, 1_000)))
    assert fleet.free_of("n1").whole_devices == 7
    assert [fleet.free(holder) for _ in range(3)] == [True, False, False]
    assert fleet.free_of("n1").devices_milli == 8_000
    assert fleet.free_of("n1") == fleet.totals()


def test_a_holder_with_one_place_can_not_take_another():
    """Proves that a changed place under the same name is an error, not a silent double hold."""
    fleet = fleet_of([node("n1", devices=2)])
    fleet.hold(Holder("t/a", 1, 0), place("n1", (0, 1_000)))
    with pytest.raises(Conflict):
        fleet.hold(Holder("t/a", 1, 0), place("n1", (1, 1_000)))
    assert fleet.free_of("n1").whole_devices == 1


def test_a_thousand_rounds_of_shares_leave_no_residue():
    """Proves that shares are exact: after 0.1 + 0.2 + 0.7 a thousand times one whole device is free (R01 c)."""
    fleet, order = fleet_of([node("n1", devices=1)]), random.Random(1)
    for number in range(1_000):
        holders = [Holder(f"t/{number}", 1, member) for member in range(3)]
        for holder, milli in zip(holders, (100, 200, 700), strict=True):
            fleet.hold(holder, place("n1", (0, milli)))
        assert fleet.free_of("n1").devices_milli == 0
        order.shuffle(holders)
        for holder in holders:
            fleet.free(holder)
    assert fleet.snapshot().devices[0, 0] == 1_000
    assert fleet.free_of("n1") == fleet.totals()


def test_rows_follow_names_whatever_came_first():
    """Proves that registration order never shows, also when nodes join and leave between holds (R32)."""
    views = [node(f"n{index}", devices=index % 3, rack="ab"[index % 2]) for index in range(6)]
    first = fleet_of(views)
    second = Fleet()
    for index in (5, 2, 0):
        second.upsert(views[index])
    second.hold(Holder("t/a", 1, 0), place("n2", (1, 300)))
    second.snapshot()
    for index in (4, 1, 3):
        second.upsert(views[index])
    first.hold(Holder("t/a", 1, 0), place("n2", (1, 300)))
    assert first.snapshot().table.ids == tuple(f"n{index}" for index in range(6))
    assert arrays(first) == arrays(second)


def test_plain_booking_and_counting_anew_give_the_same_arrays():
    """Proves that the arrays kept up step by step are those counted from the books."""
    random_source = random.Random(3)
    views = [node(f"n{index}", devices=4) for index in range(5)]
    fleet = fleet_of(views)
    fleet.snapshot()
    live = []
    for number in range(300):
        if live and random_source.random() < 0.45:
            fleet.free(live.pop(random_source.randrange(len(live))))
        else:
            holder = Holder(f"t/{number}", 1, 0)
            devices = ((random_source.randrange(4), random_source.choice((250, 1_000))),)
            fleet.hold(holder, place(f"n{random_source.randrange(5)}", *devices))
            live.append(holder)
        if number % 50 == 0:
            fleet.snapshot()
    fresh = fleet_of(views)
    for view in views:
        for holder, held in fleet.held_by(view.description.id).items():
            fresh.hold(holder, held)
    assert arrays(fleet) == arrays(fresh)


def test_a_device_that_is_kept_back_or_broken_is_not_offered():
    """Proves that leftovers and broken devices are not free, and come back when they are ok again."""
    fleet = fleet_of([node("n1", devices=3, states=(DeviceState.OK, DeviceState.HELD, DeviceState.BROKEN))])
    assert fleet.free_of("n1").devices_milli == 1_000
    assert fleet.snapshot().devices[:, 0].tolist() == [1_000, 0, 0]
    fleet.hold(Holder("t/a", 1, 0), place("n1", (1, 400)))
    assert fleet.free_of("n1").whole_devices == 1
    fleet.upsert(node("n1", devices=3))
    assert fleet.snapshot().devices[:, 0].tolist() == [1_000, 600, 1_000]
    assert fleet.snapshot().amounts[[WHOLE, DEVICES], 0].tolist() == [2, 2_600]


def test_a_closed_node_says_why_and_opens_again():
    """Proves that closing is a matter of one row, with its reason, and holds nothing."""
    fleet = fleet_of([node("n1"), node("n2")])
    fleet.upsert(node("n2", is_open=False, reason_closed="window"))
    view = fleet.snapshot()
    assert (view.amounts[OPEN].tolist(), view.closed) == ([1, 0], {1: "window"})
    fleet.upsert(node("n2"))
    assert (fleet.snapshot().amounts[OPEN].tolist(), fleet.snapshot().closed) == ([1, 1], {})


def test_a_place_on_a_node_that_is_not_known_yet_counts_when_it_joins():
    """Proves that restoring holdings before nodes leaves nothing free that is held."""
    fleet = Fleet()
    fleet.hold(Holder("t/a", 1, 0), place("n1", (0, 1_000), cpu=4_000))
    assert fleet.free_of("n1").nodes == 0
    fleet.upsert(node("n1", cpu=64, devices=2))
    assert (fleet.free_of("n1").cpu_milli, fleet.free_of("n1").whole_devices) == (60_000, 1)


def test_what_is_held_on_a_removed_node_is_still_held_when_it_returns():
    """Proves that free means proven free: leaving and joining again gives nothing back."""
    fleet = fleet_of([node("n1", devices=1)])
    fleet.hold(Holder("t/a", 1, 0), place("n1", (0, 1_000)))
    fleet.remove("n1")
    assert (len(fleet.snapshot().table), fleet.totals().nodes) == (0, 0)
    fleet.upsert(node("n1", devices=1))
    assert fleet.free_of("n1").whole_devices == 0
    assert list(fleet.held_by("n1")) == [Holder("t/a", 1, 0)]


def test_a_node_that_shrank_below_what_is_held_breaks_nothing():
    """Proves that a smaller description leaves exact, possibly negative, books and no error."""
    fleet = fleet_of([node("n1", cpu=8, devices=4)])
    fleet.hold(Holder("t/a", 1, 0), place("n1", (3, 1_000), cpu=6_000))
    fleet.upsert(node("n1", cpu=4, devices=2))
    assert fleet.snapshot().amounts[CPU, 0] == -2_000
    fleet.free(Holder("t/a", 1, 0))
    assert fleet.free_of("n1") == fleet.totals()


def test_a_view_never_changes_after_it_was_taken():
    """Proves that a view in use is left alone, and can't be written to."""
    fleet = fleet_of([node("n1", devices=2)])
    view = fleet.snapshot()
    fleet.hold(Holder("t/a", 1, 0), place("n1", (0, 1_000)))
    assert view.amounts[WHOLE, 0] == 2
    assert fleet.snapshot().amounts[WHOLE, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        view.devices[0, 0] = 5


def test_a_log_of_changes_forgets_but_never_lies():
    """Proves that whoever is too far behind is told so, and everybody else gets exactly the rows in between."""
    log = TouchLog()
    for row in range(2_000):
        log.add(row)
    assert log.since(1_990).tolist() == list(range(1_990, 2_000))
    assert log.since(10, 12).tolist() == [10, 11]
    for row in range(REMEMBERED):
        log.add(row)
    assert log.since(0) is None
    assert log.since(log.end - 3).tolist() == [REMEMBERED - 3, REMEMBERED - 2, REMEMBERED - 1]
    log.extend(np.arange(REMEMBERED))
    assert log.since(log.end - 1) is None
    assert log.since(log.end).tolist() == []
