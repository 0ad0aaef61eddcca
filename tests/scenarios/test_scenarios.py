"""Every scenario file beside this one holds: production services on the virtual clock, all standing invariants."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.outcome import HOLDS

#: The longest lives a thousand rounds: two minutes of a processor, and several on a machine that is shared.
pytestmark = pytest.mark.timeout(1_200)
FILES = sorted(Path(__file__).parent.rglob("*.yaml"))
#: Worlds that exploration found and shrunk; each once broke something.
FOUND = [file for file in FILES if file.parent.name == "found"]


def test_the_folder_of_scenarios_is_not_empty() -> None:
    """An empty folder would prove nothing."""
    assert len(FILES) >= 20


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_the_scenario_holds_with_every_invariant(file: Path) -> None:
    """Its expectations and INV1 to INV11 hold; what does not is printed with time, seed and the command to see it."""
    said: list[str] = []
    code = run_files([file], write=said.append)
    assert code == HOLDS, "\n".join(said)


@pytest.mark.parametrize("file", FOUND, ids=[file.stem for file in FOUND])
def test_what_exploration_found_holds_the_way_it_was_found(file: Path) -> None:
    """Most of exploration hands records over without FastStream's stack, with other moments: there it must hold too."""
    said: list[str] = []
    code = run_files([file], lean=True, write=said.append)
    assert code == HOLDS, "\n".join(said)
