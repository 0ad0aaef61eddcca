"""The tests of the tests: a scenario that holds fails when the mechanism it is about is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.outcome import FAILS, HOLDS
from evenflow.testkit.mutants import MUTANTS
from evenflow.testkit.mutants.__main__ import main, report
from evenflow.testkit.mutants.proving import found, seeds_for

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PAIRS = [(name, stem) for name, mutant in MUTANTS.items() for stem in mutant.breaks[:1]]


def test_every_mutant_has_a_file_that_shows_it() -> None:
    """Proves that the registry leaves none to exploration alone, and names files that are there."""
    stems = {file.stem for file in SCENARIOS.rglob("*.yaml")}
    assert [name for name, mutant in MUTANTS.items() if not mutant.breaks] == []
    assert all(set(mutant.breaks) <= stems for mutant in MUTANTS.values())


@pytest.mark.parametrize(("name", "stem"), PAIRS)
def test_a_scenario_fails_when_its_mechanism_is_switched_off(name: str, stem: str) -> None:
    """Proves the switch and the file: it fails under the mutant and holds again afterwards."""
    file = next(SCENARIOS.rglob(f"{stem}.yaml"))
    said: list[str] = []
    with MUTANTS[name].switched():
        assert run_files([file], write=said.append) == FAILS, said
    assert run_files([file], write=said.append) == HOLDS, said


@pytest.mark.parametrize("name", ["manifest-last", "kept-document"])
def test_exploration_finds_a_mutant_that_any_world_shows(name: str) -> None:
    """Proves the search: a seed that goes wrong under the mutant and holds without it."""
    row = found(MUTANTS[name], [MUTANTS[name].seed], lambda _: None)
    assert row["seed"] == MUTANTS[name].seed, row
    assert row["problem"]


def test_the_search_begins_with_the_seed_that_is_known_and_passes_over_worlds_without_its_faults() -> None:
    """Proves that no world is lived twice, nor one that can't show the mutant."""
    mutant = MUTANTS["archive-before-expiry"]
    seeds = list(seeds_for(mutant, 60))
    assert seeds[0] == mutant.seed
    assert len(set(seeds)) == len(seeds) < 40


def test_a_mutant_that_nothing_shows_is_reported_and_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Proves that a survivor can't be overlooked: of exploration, of the files, and a file that holds under all."""
    file = SCENARIOS / "R50-a-cancel-crosses-allocate.yaml"
    caught = {"seed": 7, "worlds": 1, "failing": [], "problem": "INV1", "cpu_s": 1.0}
    search, pair = {"mutant": "cancel", "seeds": 1}, {"mutant": "cancel", "file": str(file)}
    assert report(["cancel"], [file], [(search, caught), (pair, {"breaks": True})], known=False)
    assert not report(["cancel"], [file], [(search, {**caught, "seed": None}), (pair, {"breaks": True})], known=False)
    assert not report(["cancel"], [file], [(search, caught), (pair, {"breaks": False})], known=False)
    assert "SURVIVES" in capsys.readouterr().out
    assert main(["no-such-mutant", "--files", str(SCENARIOS)]) == 2
