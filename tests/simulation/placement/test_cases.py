"""Field cases about deciding, run with the whole product on the virtual clock, all standing invariants included."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.outcome import HOLDS

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_case_holds(case: Path) -> None:
    """Every expectation of the file, and INV1 to INV11 after every step."""
    said: list[str] = []
    assert run_files([case], write=said.append) == HOLDS, "\n".join(said)


def test_there_are_cases() -> None:
    """An empty folder would prove nothing."""
    assert len(CASES) >= 12
