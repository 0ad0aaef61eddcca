"""The tests of the tests: each scenario holds, and fails when the mechanism it is about is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.outcome import FAILS, HOLDS
from evenflow.testkit.mutants import MUTANTS

SCENARIOS = Path(__file__).parents[1] / "scenarios"
PAIRS = [(name, stem) for name, mutant in MUTANTS.items() for stem in mutant.breaks]


@pytest.mark.parametrize(("name", "stem"), PAIRS)
def test_a_scenario_fails_when_its_mechanism_is_switched_off(name: str, stem: str) -> None:
    """Holds as it is, fails under its mutant, holds again afterwards."""
    file = SCENARIOS / f"{stem}.yaml"
    said: list[str] = []
    assert run_files([file], write=said.append) == HOLDS, said
    with MUTANTS[name].switched():
        assert run_files([file], write=said.append) == FAILS, said
    assert run_files([file], write=said.append) == HOLDS, said
