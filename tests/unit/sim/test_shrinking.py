"""Shrinking, with cheap stand-ins for a failing world: what is left out, what is lowered, what is never touched."""

from __future__ import annotations

import json

import pytest

from evenflow.sim.explore.drawing import draw
from evenflow.sim.explore.leaving import groups_of, without_datasets, without_queues, without_sites
from evenflow.sim.explore.sameness import Failure, Same, kind_of, lasting
from evenflow.sim.explore.shrinking import shrink
from evenflow.sim.explore.writing import flow, written
from evenflow.sim.scenario.outcome import ScenarioWrong
from evenflow.sim.scenario.parse import parse_scenario, scenario_of

WORLD = {
    "version": 1,
    "name": "w",
    "about": "",
    "seed": 4,
    "until": 900,
    "settings": {"heartbeat_s": 5, "stop_grace_s": 7},
    "policy": {},
    "sites": [{"id": "east", "region": "r1"}, {"id": "west", "region": "r2"}],
    "links": [{"from": "east", "to": "west", "round_trip_ms": 20}],
    "nodes": [
        {"id": "n1", "site": "east", "cpu": 8, "devices": {"model": "t4", "count": 4}},
        {"id": "n2", "site": "west", "cpu": 8},
    ],
    "queues": [{"id": "q", "limit": {"devices": "2"}}],
    "datasets": [{"id": "d", "size": "2GB", "copies": [{"site": "east", "authoritative": True}, {"site": "west"}]}],
    "steps": [
        {"at": 1.234, "submit": {"id": "t1", "queue": "q", "run": {"work_s": 12.345}, "members": 4}},
        {"at": 2, "submit": {"id": "t2", "data": [{"dataset": "d"}], "checkpoint": {"every_s": 5, "parts": 3}}},
        {"at": 3.5, "node": {"kill": "n2"}},
        {"at": 4.75, "cancel": {"task": "t1", "reason": "drawn"}},
        {"at": 9, "node": {"restart": "n2"}},
        {"at": 10, "service": {"kill": "billing"}},
        {"at": 12, "service": {"restart": "billing"}},
        {"at": 20, "cut": {"link": ["east", "west"]}},
        {"at": 300, "settle": {}},
    ],
}


def test_what_the_failure_needs_stays_and_the_rest_goes():
    """Proves that steps, fields, nodes, sites, links, queues, datasets and settings all go, and numbers get small."""

    def fails(document):
        try:
            scenario_of(document)
        except ScenarioWrong:
            return False
        tasks = [step["submit"] for step in document["steps"] if "submit" in step]
        gang = any(task["id"] == "t1" and task.get("members", 1) > 1 for task in tasks)
        return gang and any(step["at"] > 2 for step in document["steps"] if "cancel" in step)

    before = json.dumps(WORLD)
    small = shrink(WORLD, fails)
    assert json.dumps(WORLD) == before
    assert {name for name, value in small.items() if value} == {"version", "name", "seed", "until", "steps"}
    assert small["until"] < 10
    assert small["steps"] == [
        {"at": 0, "submit": {"id": "t1", "members": 2}},
        {"at": pytest.approx(4, abs=1), "cancel": {"task": "t1"}},
    ]


def test_steps_after_the_moment_of_the_failure_are_cut_off_first():
    """Proves that one try takes away what came later, and that a moment beyond the end changes nothing."""
    tried = []

    def fails(document):
        tried.append(document)
        return len(tried) == 1

    small = shrink(WORLD, fails, ends_s=3.6, tries_max=1)
    assert [step["at"] for step in small["steps"]] == [1.234, 2, 3.5]
    assert small["until"] == 5
    assert shrink(WORLD, lambda _document: False, ends_s=2_000) == WORLD


def test_no_more_is_tried_than_the_budget_allows():
    """Proves both bounds, and that the smallest world so far is what comes back."""
    tried = []
    said = []
    small = shrink(WORLD, lambda document: tried.append(document) is None, said.append, tries_max=1)
    assert len(tried) == 1
    assert small == tried[0]
    assert said[-1] == "budget spent after 1 tries"
    assert shrink(WORLD, lambda _document: True, cpu_s_max=0) == WORLD


def test_a_world_that_cannot_get_smaller_comes_back_unchanged():
    """Proves that no candidate is tried twice and nothing is made up."""
    tried = []

    def fails(document):
        tried.append(json.dumps(document, sort_keys=True))
        return False

    assert shrink(WORLD, fails) == WORLD
    assert len(tried) == len(set(tried))


def test_leaving_out_a_part_leaves_out_what_is_about_it():
    """Proves that no step, copy, link or task points at what is gone: each result is a scenario."""
    less = without_sites(WORLD, ["west"])
    assert [node["id"] for node in less["nodes"]] == ["n1"]
    assert less["links"] == []
    assert less["datasets"][0]["copies"] == [{"site": "east", "authoritative": True}]
    assert not any("node" in step or "cut" in step for step in less["steps"])
    assert "queue" not in without_queues(WORLD, ["q"])["steps"][0]["submit"]
    assert "data" not in without_datasets(WORLD, ["d"])["steps"][1]["submit"]
    for document in (less, without_queues(WORLD, ["q"]), without_datasets(WORLD, ["d"])):
        scenario_of(document)


def test_a_fault_and_its_end_are_one_story():
    """Proves that steps about one task, node or service leave together."""
    assert groups_of(WORLD) == [[0, 3], [1], [2, 4], [5, 6], [7], [8]]


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        ("INV1 at 91.7 s: n7 holds 2000 of cpu, it has 0, after t18", "INV1: # holds # of cpu, it has #"),
        ("INV8 at 9 s: default/t3 is still queued with reasons ['cpu']", "INV8: # is still queued with reasons"),
        ("INV10 at 5 s: billing ended untold: ValueError: x", "INV10: billing ended untold: ValueError: x"),
        ("lag of evenflow.billing: 3 records at the end", "lag of evenflow.billing: # records at the end"),
        ("hangs: no end within 180 s", "hangs: no end within # s"),
    ],
)
def test_a_problem_has_a_kind_without_names_and_numbers(problem, kind):
    """Proves what makes two failures the same."""
    assert kind_of(problem) == kind


def test_what_cannot_end_for_a_good_reason_is_not_the_same_failure():
    """Proves that a fault may not outlive its end, nor the time after `settle` shrink, where the end is judged."""
    assert list(lasting(WORLD)) == []
    killed = {**WORLD, "steps": [step for step in WORLD["steps"] if step.get("node") != {"restart": "n2"}]}
    assert list(lasting(killed)) == ["n2 killed"]
    broken = {**WORLD, "steps": [{"at": 1, "device": {"node": "n1", "break": True}}]}
    assert list(lasting(broken)) == ["n1/0 broken"]
    same = Same(WORLD, Failure("INV8 at 900 s: t is still queued", 900, at_end=True), lean=True)
    assert not same(killed)
    assert not same({**WORLD, "until": 899})
    assert not same({**WORLD, "steps": WORLD["steps"][:-1]})


def test_every_drawn_world_can_be_written_and_reads_back():
    """Proves that whatever is drawn becomes a file with one step a line, equal to the document."""
    for seed in range(6):
        document = {**draw(seed)[0], "expect": []}
        text = written(document, remarks=("a remark\nof two lines",))
        assert text.startswith("# a remark of two lines\nversion: 1\nname: ")
        assert sum(line.startswith("  - {at: ") for line in text.splitlines()) == len(document["steps"])
        assert parse_scenario(text.encode()).seed == seed


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"at": 5.0, "submit": {"id": "t{i}"}}, '{at: 5, submit: {id: "t{i}"}}'),
        (["10Gbit/s", "0.5", "1e5", "null", "a: b", "", True, None, 0.25], '["10Gbit/s", "0.5", "1e5", "null"'),
    ],
)
def test_texts_that_could_be_read_as_something_else_are_quoted(value, text):
    """Proves the quoting; what needs none has none."""
    assert flow(value).startswith(text.replace('"10Gbit/s"', "10Gbit/s"))


def test_what_cannot_be_written_as_a_file_is_refused():
    """Proves that a document is never written as another one."""
    with pytest.raises(ValueError, match="can't be written"):
        written({"version": 1, "until": float("nan")})
