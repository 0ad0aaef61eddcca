"""Field cases about deciding, run with the whole product on the virtual clock, all standing invariants included."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.outcome import HOLDS

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_field_case_holds_on_the_virtual_clock(case: Path) -> None:
    """Every expectation of the file, and INV1 to INV11 after every step."""
    said: list[str] = []
    assert run_files([case], write=said.append) == HOLDS, "\n".join(said)


def test_the_folder_of_cases_is_not_empty() -> None:
    """An empty folder would prove nothing."""
    assert len(CASES) >= 12
