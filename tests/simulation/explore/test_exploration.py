"""Exploration as a whole: the same figures for any number of processes, and a broken mechanism found and made small."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.explore.command import Exploration, explored, kept, lived, shrunk
from evenflow.sim.explore.drawing import draw
from evenflow.sim.explore.lives import FULL, LEAN
from evenflow.sim.scenario.outcome import FAILS, HOLDS
from evenflow.sim.scenario.parse import scenario_of
from evenflow.sim.world.running import Run
from evenflow.testkit.mutants import MUTANTS

MEASURED = ("jobs", "seconds", "processor_seconds", "runs_per_s", "lives_per_s")


def test_the_figures_are_the_same_for_any_number_of_processes():
    """Proves that nothing but what was measured depends on how the seeds were spread."""
    found = []
    for jobs in (1, 2):
        figures = explored(Exploration(range(3), jobs=jobs, keep_going=True, shrink_s=0)).figures()
        found.append({name: value for name, value in figures.items() if name not in MEASURED})
        assert figures["lives_per_s"] > 0
    assert found[0] == found[1]
    assert found[0]["seeds"] == 3
    assert found[0]["tasks_min"] >= 12


def test_no_seed_begins_after_the_given_minutes():
    """Proves that the time bounds the run, and that what ran is counted without a gap."""
    figures = explored(Exploration(range(5, 10_000), kinds=[], minutes=0.01, shrink_s=0)).figures()
    assert 1 <= figures["seeds"] < 50
    assert figures["first_seed"] == 5


@pytest.mark.parametrize("pace", [LEAN, FULL])
def test_a_watched_world_is_the_same_as_one_that_nobody_watches(tmp_path: Path, pace) -> None:
    """Proves that a world seen by exploration can be repeated as a scenario, byte for byte."""
    scenario = scenario_of({**draw(3)[0], "until": 60, "steps": draw(3)[0]["steps"][:8]})
    Run(scenario, out=tmp_path / "alone", pace=pace).go()
    Run(scenario, out=tmp_path / "watched", pace=pace, watch=lambda _now_ms, _model: False, watch_ms=1).go()
    alone, watched = ((tmp_path / name / "events.jsonl").read_bytes() for name in ("alone", "watched"))
    assert alone == watched


def test_a_broken_mechanism_is_found_and_shrunk_to_a_file_that_shows_it(tmp_path: Path) -> None:
    """Proves the way from a seed to a file of a step or two: it fails while the mechanism is off, and holds with it."""
    with MUTANTS["kept-share"].switched():
        seed, problems = next(
            (row["seed"], row["problems"]) for row in map(_unfaulted, range(1, 30)) if row["problems"]
        )
        answer = shrunk(seed, [], problems, 60, lambda _text: None)
        asked = {"shrink": seed, "kinds": [], "problems": problems}
        found = kept(tmp_path, asked, answer)
        assert found.steps <= 2 < found.steps_before
        assert found.replay == f"evenflow scenario run {found.file}" + " --lean" * answer["lean"]
        said: list[str] = []
        assert run_files([Path(found.file)], lean=answer["lean"], write=said.append) == FAILS
    assert "INV7" in "\n".join(said)
    assert run_files([Path(found.file)], lean=answer["lean"], write=said.append) == HOLDS
    assert Path(found.file).read_text().count("\n  - {at: ") == found.steps


def _unfaulted(seed: int) -> dict:
    return lived(seed, [])
