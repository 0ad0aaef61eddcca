"""docs/embedded-log.md names tests: each of them is there, and each file of the suite is named or its tests are."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = (Path(__file__).parents[3] / "docs" / "embedded-log.md").read_text()
#: Held by the simulation, not by clients.
OF_THE_SIMULATION = {"test_hooks.py", "test_virtual_time.py", Path(__file__).name}


def found_in(file: Path, fixtures: str = "") -> set[str]:
    return set(re.findall(rf"^(?:async )?def (test_\w+)\({fixtures}", file.read_text(), re.MULTILINE))


def test_every_test_that_the_page_names_is_there():
    """Proves that the table of behaviours is not older than the suite."""
    known = {name for file in HERE.glob("test_*.py") for name in found_in(file)}
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    files = set(re.findall(r"`(test_\w+\.py)`", PAGE))
    assert named - known == set()
    assert files - {file.name for file in HERE.glob("test_*.py")} == set()


def test_every_test_of_both_logs_is_on_the_page():
    """Proves that a behaviour which is tested is a behaviour which is written down."""
    missing = []
    for file in sorted(HERE.glob("test_*.py")):
        if file.name not in OF_THE_SIMULATION and f"`{file.name}`" not in PAGE:
            missing += [f"{file.name}: {name}" for name in sorted(found_in(file, "cluster")) if f"`{name}`" not in PAGE]
    assert missing == [], missing
