"""The lean way of handing records over is FastStream's, less its stack: the same records come of it."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.world.running import Run
from evenflow.sim.world.world import Pace

SCENARIOS = Path(__file__).parents[1] / "scenarios"
#: Bodies and headers that name a moment or an incarnation; when a record is written differs by virtual milliseconds.
SET_ASIDE = ("evenflow.rounds.v1", "evenflow.placement-state.v1", "evenflow.billing-state.v1", "evenflow.telemetry.v1")


def course(folder: Path, stem: str, pace: Pace, seed: int) -> dict[str, list[str]]:
    """What happened, by topic and key: the types in order."""
    data = (SCENARIOS / f"{stem}.yaml").read_bytes()
    result = Run(parse_scenario(data, name=stem, seed=seed), out=folder, pace=pace).go()
    assert result.ok, (result.broken, result.violations, result.exits)
    found: dict[str, list[str]] = defaultdict(list)
    with (folder / "events.jsonl").open() as file:
        for line in file:
            event: dict[str, Any] = json.loads(line)
            if event["topic"] not in SET_ASIDE:
                found[f"{event['topic']} {event['key']}"].append(event["type"])
    return dict(found)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("stem", ["R06-quarters", "R09-a-two-gangs"])
def test_the_same_course_comes_of_both_ways_of_handing_records_over(tmp_path: Path, stem: str, seed: int) -> None:
    """Same facts in the same order for every key, expectations and invariants held both times."""
    whole = course(tmp_path / "whole", stem, Pace(), seed)
    lean = course(tmp_path / "lean", stem, Pace(lean=True), seed)
    assert lean == whole
