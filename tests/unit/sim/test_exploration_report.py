"""The figures of an exploration, and the command that asks for one."""

from __future__ import annotations

import json

import pytest

from evenflow.cli import exits, main
from evenflow.cli.commands.simulate import read_kinds, read_range
from evenflow.sim.explore.faults import FAULTS
from evenflow.sim.explore.points import POINTS
from evenflow.sim.explore.report import ENOUGH, Found, Outcome, Report

PROBLEM = "INV1 at 3 s: n1 holds 2 of cpu"


def whole(seed: int, **more) -> Outcome:
    """A seed that met every fault and every fail point."""
    return Outcome(seed, faults=sorted(FAULTS), points=dict.fromkeys(POINTS, 2), tasks=20, cpu_s=0.5, **more)


def test_the_figures_do_not_depend_on_the_order_of_the_answers():
    """Proves that any number of processes gives one report."""
    outcomes = [
        whole(0, states={"succeeded": 20}, reasons=["cpu"]),
        Outcome(1, tasks=12, cpu_s=0.5, states={"failed": 1, "succeeded": 11}),
        Outcome(2, problems=[PROBLEM], faults=["garbage"], tasks=14, cpu_s=1.0),
    ]
    made = []
    for order in (outcomes, outcomes[::-1]):
        report = Report(None, 2)
        for outcome in order:
            report.add(outcome)
        report.wall_s = 2.0
        made.append(report.figures())
    assert made[0] == made[1]
    figures = made[0]
    assert (figures["seeds"], figures["runs_per_s"], figures["lives"], figures["lives_per_s"]) == (3, 1.5, 46, 23.0)
    assert (figures["tasks_min"], figures["tasks_median"]) == (12, 14)
    assert figures["states"] == {"failed": 1, "succeeded": 31}
    assert figures["faults"]["garbage"] == 2
    assert figures["fail_points"]["billing.before-commit"] == 2
    assert figures["failing"] == [
        {
            "seed": 2,
            "kind": "INV1: # holds # of cpu",
            "problems": [PROBLEM],
            "command": "evenflow simulate explore --seeds 2:3",
            "file": None,
            "replay": None,
        }
    ]


def test_seeds_that_ran_ahead_of_the_first_failing_one_do_not_count():
    """Proves that a stop at the first failure gives the same figures for any number of processes."""
    report = Report(["garbage"], 2)
    for outcome in (Outcome(0), Outcome(3), Outcome(1, problems=[PROBLEM]), Outcome(2, problems=["x"])):
        report.add(outcome)
    report.keep_until(1)
    assert [outcome.seed for outcome in report.outcomes] == [0, 1]
    assert report.command(1) == "evenflow simulate explore --seeds 1:2 --faults garbage"


def test_a_fault_or_a_fail_point_that_never_occurred_is_named_when_there_were_enough_seeds():
    """Proves that the guard speaks after enough seeds with all faults, and only then."""
    report = Report(None, 1)
    for seed in range(ENOUGH - 1):
        report.add(whole(seed))
    for outcome in report.outcomes:
        outcome.faults = [kind for kind in outcome.faults if kind != "garbage"]
        outcome.points = {point: count for point, count in outcome.points.items() if point != POINTS[0]}
    assert report.never() == []
    report.add(Outcome(ENOUGH))
    assert report.never() == ["fault garbage", f"fail point {POINTS[0]}"]
    assert f"never occurred: fail point {POINTS[0]}" in report.lines()
    chosen = Report(["garbage"], 1)
    for seed in range(ENOUGH):
        chosen.add(Outcome(seed))
    assert chosen.never() == []


def test_people_are_told_how_to_see_a_failure_again():
    """Proves that problems, the seed's command and the file's command are printed."""
    report = Report(None, 1)
    report.add(Outcome(7, problems=[PROBLEM, "b: c", "d: e", "f: g"]))
    report.found[7] = Found(7, "found/seed-7-inv1.yaml", "evenflow scenario run found/seed-7-inv1.yaml", 2, 40)
    text = "\n".join(report.lines())
    assert "again with: evenflow simulate explore --seeds 7:8" in text
    assert "2 of 40 steps still fail; again with: evenflow scenario run found/seed-7-inv1.yaml" in text
    assert "… and 1 more" in text
    assert Report(None, 1).lines()[-1] == "nothing found"


@pytest.mark.parametrize("text", ["5", "5:5", "6:5", "a:b", "-1:5", "1:2:3", ""])
def test_a_range_that_is_none_is_refused_with_what_to_write(text):
    """Proves exit code 2 with the option's name."""
    with pytest.raises(exits.Stop) as stop:
        read_range(text)
    assert (stop.value.exit_code, stop.value.path) == (exits.WRONG, "--seeds")


def test_ranges_are_half_open_and_kinds_of_fault_are_known():
    """Proves how the options are read, and that an unknown kind is refused by name."""
    assert read_range("3:5") == range(3, 5)
    assert read_kinds("all") is None
    assert read_kinds("none") == []
    assert read_kinds("garbage, node-lost,garbage") == ["garbage", "node-lost"]
    with pytest.raises(exits.Stop, match="no kind of fault 'storm'"):
        read_kinds("garbage,storm")


def test_wrong_options_end_the_command_with_two(capsys):
    """Proves the exit code through the command line, said as JSON too."""
    with pytest.raises(SystemExit) as left:
        main.run(["simulate", "explore", "--seeds", "9", "--json"])
    assert left.value.code == exits.WRONG
    assert json.loads(capsys.readouterr().err)["path"] == "--seeds"
