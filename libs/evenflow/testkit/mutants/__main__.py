"""The matrix of mutants: what exploration finds and which scenario files fail, mutant by mutant.

    python -m evenflow.testkit.mutants [--known] [--seeds 500] [--jobs 2] [--files DIR] [mutant ...]

Ends with 1 when a mutant survives exploration or every file, and when a file holds under all of them. Files that take
minutes are tried against a few mutants each. `--known` tries only the pairs and seeds that the registry names, with a
short search where a seed shows nothing any more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from evenflow.sim.explore.jobs import FAILED, spread
from evenflow.testkit.mutants.proving import Row, piece
from evenflow.testkit.mutants.registry import MUTANTS, SLOW

SEEDS: Final = 500
SEEDS_KNOWN: Final = 120
FOLDER: Final = "tests/scenarios"
LIMIT_S: Final = 600.0


def pieces(names: Sequence[str], files: Sequence[Path], *, known: bool, seeds: int) -> Iterator[Row]:
    """Every piece of work: a search for each mutant, and each mutant with each file."""
    for name in names:
        yield {"mutant": name, "seeds": seeds}
    for name in names:
        for file in files:
            wanted = file.stem in MUTANTS[name].breaks if known else name in SLOW.get(file.stem, (name,))
            if wanted:
                yield {"mutant": name, "file": str(file)}


def report(names: Sequence[str], files: Sequence[Path], answers: Sequence[tuple[Row, Row]], *, known: bool) -> bool:
    """Print the matrix; whether nothing survived."""
    ok = True
    broken: dict[str, list[str]] = {name: [] for name in names}
    searched: dict[str, Row] = {}
    for asked, answer in answers:
        if FAILED in answer:
            ok = False
            sys.stdout.write(f"{asked}: {answer[FAILED]}\n")
        elif "file" not in asked:
            searched[asked["mutant"]] = answer
        elif answer["breaks"]:
            broken[asked["mutant"]].append(Path(asked["file"]).stem)
    for name in names:
        answer = searched.get(name, {"seed": None, "worlds": 0, "cpu_s": 0.0, "failing": [], "problem": ""})
        survives = answer["seed"] is None or not broken[name]
        missing = sorted(set(MUTANTS[name].breaks) - set(broken[name]))
        ok = ok and not survives and not missing
        seed = "none" if answer["seed"] is None else answer["seed"]
        figures = f"seed {seed} after {answer['worlds']} worlds, {answer['cpu_s']:.0f} s"
        sys.stdout.write(f"{name:22} {'SURVIVES' if survives else 'caught':9}{figures:36} {MUTANTS[name].about}\n")
        sys.stdout.write(_more(answer, sorted(broken[name]), missing))
    held = sorted({file.stem for file in files} - {stem for stems in broken.values() for stem in stems})
    if held and not known:
        ok = False
        sys.stdout.write(f"files that hold under every mutant: {', '.join(held)}\n")
    caught = sum(1 for name in names if searched.get(name, {}).get("seed") is not None and broken[name])
    sys.stdout.write(f"{caught} of {len(names)} mutants caught, {len(files) - len(held)} of {len(files)} files fail\n")
    return ok


def _said(asked: Row, answer: Row) -> str:
    """One line about a piece that is done."""
    if FAILED in answer:
        return f"{asked['mutant']} {answer[FAILED]}"
    if "file" in asked:
        return f"{asked['mutant']} {'breaks' if answer['breaks'] else 'leaves'} {Path(asked['file']).stem}"
    return f"{asked['mutant']} shows in seed {answer['seed']} after {answer['worlds']} worlds"


def _more(answer: Row, stems: Sequence[str], missing: Sequence[str]) -> str:
    lines = [f"    {answer['problem']}"] if answer["problem"] else []
    lines.append(f"    {len(stems)} files: {', '.join(stems)}")
    if missing:
        lines.append(f"    HOLD AGAINST THE REGISTRY: {', '.join(missing)}")
    if answer["failing"]:
        lines.append(f"    seeds that do not hold without it either: {answer['failing']}")
    return "".join(line + "\n" for line in lines)


def main(arguments: Sequence[str]) -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="evenflow.testkit.mutants", description=__doc__)
    parser.add_argument("mutants", nargs="*", help="names; all unless said")
    parser.add_argument("--known", action="store_true", help="the registry's pairs and seeds only")
    parser.add_argument("--seeds", type=int, help=f"seeds to search at most; {SEEDS} unless said")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--files", type=Path, default=Path(FOLDER), help="folder of scenario files")
    told: Any = parser.parse_args(arguments)
    unknown = [name for name in told.mutants if name not in MUTANTS]
    files = sorted(told.files.rglob("*.yaml"))
    if unknown or not files:
        sys.stderr.write(f"no mutant {', '.join(unknown)}\n" if unknown else f"no scenario file in {told.files}\n")
        return 2
    names = told.mutants or list(MUTANTS)
    seeds = told.seeds or (SEEDS_KNOWN if told.known else SEEDS)
    asked = list(pieces(names, files, known=told.known, seeds=seeds))
    answers = []
    with closing(spread(piece, iter(asked), jobs=told.jobs, limit_s=LIMIT_S)) as heard:
        for answer in heard:
            answers.append(answer)
            sys.stderr.write(f"{len(answers)} of {len(asked)}: {_said(*answer)}\n")
            sys.stderr.flush()
    return 0 if report(names, files, answers, known=told.known) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
