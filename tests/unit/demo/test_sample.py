"""The shipped samples, the fleet cut of them and the scenario documents made of both."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from evenflow.sim.demo import sample
from evenflow.sim.demo.fleet import LOAD_MILLI, can_hold, cut, load_milli
from evenflow.sim.demo.scene import scene
from evenflow.sim.scenario.parse import scenario_of


@pytest.fixture(scope="module")
def tasks():
    return sample.tasks()


@pytest.fixture(scope="module")
def fleets(tasks):
    return cut(tasks, sample.nodes(), sample.SEED)


def document(tasks, fleets, *, joined=True, count=40):
    return scene(tasks[:count], fleets, sample.links(), joined=joined, seed=sample.SEED)


def test_arrivals_fill_six_hours_and_run_times_are_kept(tasks):
    """Proves that compression touches arrivals only: the first comes at 0, the last at 6 h, nobody runs over 4 h."""
    assert (tasks[0].at_ms, tasks[-1].at_ms) == (0, sample.ARRIVALS_S * 1000)
    assert [task.at_ms for task in tasks] == sorted(task.at_ms for task in tasks)
    assert all(0 < task.run_s <= 4 * 3600 for task in tasks)


def test_every_site_is_home_to_many_tasks(tasks):
    """Proves that the seeded hash spreads homes over the four sites."""
    homes = Counter(task.home for task in tasks)
    assert sorted(homes) == sorted(sample.SITES)
    assert min(homes.values()) > len(tasks) / 8


def test_the_fleet_is_cut_to_the_loads_it_should_have(tasks, fleets):
    """Proves that each site's offered load lies within two hundredths of 1.1, 0.8, 0.5 and 0.3."""
    for fleet in fleets:
        own = [task for task in tasks if task.home == fleet.site]
        assert fleet.load_milli == load_milli(own, fleet.nodes)
        assert abs(fleet.load_milli - LOAD_MILLI[fleet.site]) <= 20, fleet.site


def test_no_node_stands_at_two_sites_and_each_site_has_a_node_of_eight(fleets):
    """Proves that the cut shares nodes out."""
    names = [node.name for fleet in fleets for node in fleet.nodes]
    assert len(names) == len(set(names))
    assert all(any(node.device_count == 8 for node in fleet.nodes) for fleet in fleets)


def test_a_site_without_devices_is_loaded_beyond_measure(tasks):
    """Proves that an empty site never looks idle."""
    assert load_milli(tasks, ()) > 1_000_000


def test_a_task_fits_an_empty_node_only_if_every_dimension_does(tasks, fleets):
    """Proves that cores, memory and devices are all asked."""
    node = max(fleets[0].nodes, key=lambda one: one.device_count)
    task = tasks[0]
    assert can_hold(task, [node])
    for limit in ("cpu_milli", "memory_mib", "device_count"):
        small = sample.SampleNode(**{**{name: getattr(node, name) for name in node.__slots__}, limit: -1})
        assert not can_hold(task, [small]), limit


def test_the_same_seed_makes_the_same_scene_and_another_another(tasks, fleets):
    """Proves that nothing but the seed is drawn from."""
    once, again = document(tasks, fleets), document(sample.tasks(), cut(tasks, sample.nodes(), sample.SEED))
    assert json.dumps(once) == json.dumps(again)
    other = scene(tasks[:40], fleets, sample.links(), joined=True, seed=sample.SEED + 1)
    assert json.dumps(once) != json.dumps(other)


def test_the_worlds_differ_in_the_pins_alone(tasks, fleets):
    """Proves that isolated is the same engine and load, with each task pinned to its home."""
    joined, isolated = document(tasks, fleets), document(tasks, fleets, joined=False)
    submitted = [step["submit"] for step in isolated["steps"] if "submit" in step]
    assert all(task.pop("where") == {"sites": [task["labels"]["home"]]} for task in submitted)
    for told in (joined, isolated):
        del told["name"], told["about"]
    assert joined == isolated


def test_both_scenes_are_scenarios_that_the_product_takes(tasks, fleets):
    """Proves that the strict reader of scenario files accepts the documents, loss and return of a node included."""
    for joined in (True, False):
        scenario = scenario_of(document(tasks, fleets, joined=joined))
        assert [step.verb for step in scenario.steps].count("submit") == 40
        assert [step.verb for step in scenario.steps].count("node") == 2
