"""`evenflow scenario run`: files and seeds in, lines and an exit code out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evenflow.sim.observation.record import json_line
from evenflow.sim.scenario.outcome import FAILS, HOLDS, PLANNED, WRONG, ScenarioPlanned, ScenarioWrong, together
from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.world.running import Run, RunResult
from evenflow.sim.world.world import Pace

Write = Callable[[str], object]
EXITS_SHOWN = 5


def run_files(
    files: Sequence[Path],
    *,
    seed: int | None = None,
    repeat: int = 1,
    out: Path | None = None,
    lean: bool = False,
    as_json: bool = False,
    write: Write = print,
) -> int:
    """Run every file with every seed and say what came of it; returns the exit code of all together.

    `lean` hands records over without FastStream's stack, as most of exploration does; the moments differ a little.
    `repeat` runs seeds seed … seed + repeat - 1. One file and seed write straight into `out`, several into
    `out/<stem>/<seed>`.
    """
    several = len(files) > 1 or repeat > 1
    codes: list[int] = []
    for file in files:
        try:
            data = file.read_bytes()
            first = parse_scenario(data, name=_stem(file), seed=seed).seed
        except OSError as error:
            codes.append(_refused(file, WRONG, f"can't be read: {error.strerror}", as_json=as_json, write=write))
            continue
        except (ScenarioWrong, ScenarioPlanned) as refusal:
            codes.append(_refused(file, refusal.exit_code, refusal.message, as_json=as_json, write=write))
            continue
        for number in range(first, first + repeat):
            folder = None if out is None else out / file.stem / str(number) if several else out
            codes.append(_run(file, data, number, folder, lean=lean, as_json=as_json, write=write))
    return together(codes)


def _stem(file: Path) -> str:
    """The name of a scenario whose file says none, in the grammar of ids."""
    kept = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in file.stem.lower())
    return kept.strip("._-")[:128] or "scenario"


def _run(file: Path, data: bytes, seed: int, folder: Path | None, *, lean: bool, as_json: bool, write: Write) -> int:
    try:
        result = Run(parse_scenario(data, name=_stem(file), seed=seed), out=folder, pace=Pace(lean=lean)).go()
    except ScenarioWrong as refusal:
        return _refused(file, WRONG, refusal.message, as_json=as_json, write=write)
    if as_json:
        write(json_line(row_of(file, result)))
    else:
        for line in text_of(file, result, lean=lean):
            write(line)
    return HOLDS if result.ok else FAILS


def _refused(file: Path, code: int, why: str, *, as_json: bool, write: Write) -> int:
    kind = "planned" if code == PLANNED else "wrong"
    write(json_line({"file": str(file), "ok": False, kind: why}) if as_json else f"{file}: {why}")
    return code


def row_of(file: Path, result: RunResult) -> dict[str, Any]:
    """What `--json` prints of a run."""
    first = result.broken[0].row() if result.broken else None
    return {
        "file": str(file),
        "seed": result.seed,
        "ok": result.ok,
        "first": first,
        "violations": [violation.row() for violation in result.violations],
        "unhandled": result.unhandled,
    }


def text_of(file: Path, result: RunResult, *, lean: bool = False) -> list[str]:
    """The same for people: every expectation and invariant that does not hold, and how to see it again."""
    if result.ok:
        return [f"{file}: holds, seed {result.seed}, {result.records} records"]
    again = f"evenflow scenario run {file} --seed {result.seed}" + " --lean" * lean
    lines = [f"{file}: does not hold, seed {result.seed}; again with: {again}"]
    lines += [
        f"  at {broken.at_ms / 1000:g} s expect[{broken.number}] {broken.wanted}: found {broken.got}"
        for broken in result.broken
    ]
    lines += [
        f"  at {violation.t_ms / 1000:g} s {violation.invariant}: {violation.text}" for violation in result.violations
    ]
    lines += [f"  unhandled: {text}" for text in result.unhandled[:EXITS_SHOWN]]
    lines += [f"  ended untold: {exit_}" for exit_ in result.exits[:EXITS_SHOWN]]
    if len(result.exits) > EXITS_SHOWN:
        lines.append(f"  … and {len(result.exits) - EXITS_SHOWN} more ended untold")
    return lines
