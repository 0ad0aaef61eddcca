"""Receipts that the world sends in an agent's name: what is forged never reaches the log, a replay is what was said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenflow.sim.scenario.file import Scenario
from evenflow.sim.scenario.outcome import ScenarioWrong
from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.world.running import Run, RunResult

RUNS = "evenflow.runs.v1"
STORY = """
version: 1
until: 60
nodes: [{{id: n1, cpu: 4}}]
steps:
  - {{at: 0, submit: {{id: t, max_failures: 1, run: {{work_s: 30}}}}}}
  - {{at: 10, report: {{task: t, {}}}}}
"""


def story(report: str) -> Scenario:
    """One task that runs until 30 s, and a report at 10 s."""
    return parse_scenario(STORY.format(report).encode(), seed=1)


def live(report: str, out: Path) -> tuple[RunResult, list[dict[str, Any]]]:
    """The story's result, and what came to the log as receipts."""
    result = Run(story(report), out=out).go()
    rows = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    return result, [row for row in rows if row["topic"] == RUNS]


def test_a_replay_is_byte_for_byte_what_the_node_said(tmp_path: Path) -> None:
    """The same value under the same id, session, sequence and signature; it changes nothing."""
    result, said = live("type: attempt.started, signed: replayed", tmp_path)
    first, again = (row for row in said if row["type"] == "attempt.started")
    assert (round(first["t"]), round(again["t"])) == (1, 10)
    names = ("key", "value", "headers")
    assert [first[name] for name in names] == [again[name] for name in names]
    assert result.ok
    assert result.summary["states"]["tasks"] == {"t": "succeeded"}


def test_what_nobody_said_can_not_be_replayed() -> None:
    """It is a step that finds nothing to act on, never a receipt of its own."""
    with pytest.raises(ScenarioWrong, match=r"n1 never said attempt.succeeded of t: there is nothing to replay"):
        Run(story("type: attempt.succeeded, signed: replayed")).go()


@pytest.mark.parametrize("signed", ["false", "wrong", "revoked"])
def test_what_is_forged_stays_outside(signed: str, tmp_path: Path) -> None:
    """Without the node's own signature nothing comes to the log, and the task lives on."""
    result, said = live(f"type: attempt.failed, signed: {signed}", tmp_path)
    assert [row for row in said if row["type"] == "attempt.failed"] == []
    assert result.ok
    assert result.summary["states"]["tasks"] == {"t": "succeeded"}


def test_what_is_rightly_signed_is_the_agents_word(tmp_path: Path) -> None:
    """Nobody can tell it from the agent's: it is believed, by the observer too."""
    result, said = live("type: attempt.failed", tmp_path)
    assert [round(row["t"]) for row in said if row["type"] == "attempt.failed"] == [10]
    assert [violation for violation in result.violations if violation.invariant == "INV5"] == []
    assert result.summary["states"]["tasks"] == {"t": "failed"}
