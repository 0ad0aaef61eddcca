"""Clock, ids and draws of a simulated process."""

from __future__ import annotations

import pytest

from evenflow.sim import draws
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import process_of


def test_skew_moves_the_wall_clock_and_no_duration() -> None:
    """A process an hour ahead measures the same durations."""
    loop = VirtualLoop()
    process = process_of(1, "placement", 1)
    clock = SimulatedClock(loop, 1_000_000, process)
    start = clock.monotonic_ms()
    process.skew_ms = 3_600_000
    loop.run_until_complete(clock.sleep(2.5))
    assert clock.now_ms() == 1_000_000 + 2_500 + 3_600_000
    assert clock.monotonic_ms() - start == 2_500
    loop.close()


def test_ids_tell_incarnations_apart_and_never_repeat() -> None:
    """Name, incarnation, count: within the grammar of all ids."""
    first, second = (SimulatedIds(process_of(1, "agent.n1", number)) for number in (1, 2))
    made = [first.new_id(), first.new_id(), second.new_id()]
    assert made == ["agent.n1.1.1", "agent.n1.1.2", "agent.n1.2.1"]


def test_a_process_draws_from_its_name_not_from_its_neighbours() -> None:
    """The same seed, name and incarnation draw alike; another incarnation does not."""
    assert process_of(1, "a", 1).random.random() == process_of(1, "a", 1).random.random()
    assert process_of(1, "a", 1).random.random() != process_of(1, "a", 2).random.random()


def test_draws_by_name_are_published_values_and_spread_evenly() -> None:
    """splitmix64 gives the published first output for seed 0; ten thousand names fill ten buckets evenly."""
    assert draws.splitmix64(0) == 0xE220A8397B1DCDAF
    buckets = [0] * 10
    for number in range(10_000):
        buckets[int(draws.fraction(1, f"group/topic/0/{number}") * 10)] += 1
    assert min(buckets) > 850
    assert max(buckets) < 1150
    assert {draws.between(1, str(n), 3, 5) for n in range(50)} == {3, 4, 5}
    assert draws.fraction(1, "a") != pytest.approx(draws.fraction(2, "a"))
