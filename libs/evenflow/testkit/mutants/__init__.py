"""Switches that break one mechanism each: a check that stays green under its mutant proves nothing.

One file per mutant; `MUTANTS` lists them with the scenario files that must fail under each.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from evenflow.testkit.mutants.exact_quota import without_exact_quota
from evenflow.testkit.mutants.final_end import without_final_end
from evenflow.testkit.mutants.gang_atomicity import without_gang_atomicity
from evenflow.testkit.mutants.kept_share import without_kept_share
from evenflow.testkit.mutants.strict_numbers import without_strict_numbers


@dataclass(frozen=True, slots=True)
class Mutant:
    """One switch. `breaks` are stems of scenario files that must fail while `switched` is entered."""

    about: str
    breaks: tuple[str, ...]
    switched: Callable[[], AbstractContextManager[None]]


MUTANTS: Final[dict[str, Mutant]] = {
    "exact-quota": Mutant(
        "a limit is tested in binary floating point", ("R01-a-limit-met-exactly",), without_exact_quota
    ),
    "strict-numbers": Mutant(
        "numbers that are none, infinite or negative count as zero", ("R04-hostile-numbers",), without_strict_numbers
    ),
    "kept-share": Mutant("a share of a device is cut to whole devices", ("R06-quarters",), without_kept_share),
    "gang-atomicity": Mutant(
        "a gang that does not fit gets what there is", ("R09-a-two-gangs",), without_gang_atomicity
    ),
    "final-end": Mutant("a receipt after the end counts again", ("R46-late-and-made-up-receipts",), without_final_end),
}
