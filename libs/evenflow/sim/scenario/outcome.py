"""What running a file can end with, as an exit code: holds, does not hold, wrong file, planned feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from evenflow.core.errors import FieldRefused, Refused

HOLDS: Final = 0
FAILS: Final = 1
WRONG: Final = 2
PLANNED: Final = 3

#: Over several files or seeds the first of these that occurred decides.
_RANKING: Final = (FAILS, WRONG, PLANNED, HOLDS)


class ScenarioWrong(FieldRefused):
    """The file is wrong; `path` names the field."""

    code = "scenario-wrong"
    exit_code = WRONG


class ScenarioPlanned(Refused):
    """The file uses features that are planned; `paths` names them."""

    code = "scenario-planned"
    exit_code = PLANNED

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = tuple(paths)
        super().__init__(f"planned, not ready yet: {', '.join(self.paths)}", paths=self.paths)


def together(codes: Iterable[int]) -> int:
    """The exit code of several runs: 1 beats 2 beats 3 beats 0."""
    found = set(codes)
    return next((code for code in _RANKING if code in found), HOLDS)
