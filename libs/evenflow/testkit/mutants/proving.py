"""Where a mutant shows: in the worlds of exploration, and in scenario files."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from evenflow.sim.command import run_files
from evenflow.sim.explore.drawing import draw
from evenflow.sim.explore.lives import Life, explore
from evenflow.sim.scenario.outcome import FAILS
from evenflow.testkit.mutants.mutant import Mutant
from evenflow.testkit.mutants.registry import MUTANTS

Row = dict[str, Any]


def seeds_for(mutant: Mutant, last: int) -> Iterator[int]:
    """The seeds below `last` whose worlds may show it, the one that is known first."""
    yield mutant.seed
    for seed in range(last):
        if seed != mutant.seed and (not mutant.kinds or set(mutant.kinds) & set(draw(seed)[1])):
            yield seed


def found(mutant: Mutant, seeds: Iterable[int], tell: Callable[[str], object]) -> Row:
    """The first of the seeds whose world goes wrong under the mutant and holds without it.

    `seed` is None when there is none; `failing` are seeds that do not hold without a mutant either.
    """
    began = time.process_time()  # a figure for people
    row: Row = {"seed": None, "worlds": 0, "failing": [], "problem": ""}
    for seed in seeds:
        row["worlds"] += 1
        tell(f"seed {seed}")
        with mutant.switched():
            life: Life = explore(seed)
        if life.ok:
            continue
        if explore(seed).ok:
            row |= {"seed": seed, "problem": life.problems[0]}
            break
        row["failing"].append(seed)
    return row | {"cpu_s": time.process_time() - began}


def breaks(mutant: Mutant, file: Path) -> bool:
    """Whether a scenario file fails under the mutant."""
    with mutant.switched():
        return run_files([file], write=lambda _: None) == FAILS


def piece(row: Row, tell: Callable[[str], None]) -> Row:
    """One piece of work for a process of its own: `{"mutant", "seeds": last}` or `{"mutant", "file"}`."""
    gc.collect()  # what the worlds before left: a worker looks for it hardly ever by itself
    mutant = MUTANTS[row["mutant"]]
    if "file" in row:
        return {"breaks": breaks(mutant, Path(row["file"]))}
    return found(mutant, seeds_for(mutant, row["seeds"]), tell)
