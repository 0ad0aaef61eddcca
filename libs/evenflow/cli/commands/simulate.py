"""`evenflow simulate`: random worlds with faults, until something does not hold."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final

import typer

from evenflow.cli.commands.scenario import loaded
from evenflow.cli.exits import WRONG, Stop
from evenflow.cli.options import Form, FormOption, JsonOption, wants_json

app = typer.Typer(no_args_is_help=True, help="Explore random worlds with faults on the virtual clock.")

_RANGE: Final = re.compile(r"([0-9]{1,18}):([0-9]{1,18})")


@app.callback()
def simulate() -> None:
    """Explore random worlds with faults on the virtual clock."""


@app.command()
def explore(
    seeds: Annotated[str, typer.Option(metavar="A:B", help="Seeds A to B - 1.")] = "0:100",
    minutes: Annotated[float | None, typer.Option(min=0.01, max=100_000, help="Begin no seed after that.")] = None,
    faults: Annotated[str, typer.Option(help="all, none, or kinds of fault: a,b,c.")] = "all",
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes.")] = 1,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Go on after a failing seed.")] = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where shrunk worlds are written.")] = Path("found"),
    shrink_s: Annotated[float, typer.Option(min=0, help="Processor seconds to shrink one failure; 0 = none.")] = 300,
    limit_s: Annotated[float, typer.Option(min=1, help="Processor seconds after which a seed hangs.")] = 180,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Live the world of every seed. Exit 0: nothing found; 1: a seed fails; 2: wrong options, a fault never met."""
    command = loaded("evenflow.sim.explore.command")
    exploration = command.Exploration(
        seeds=read_range(seeds),
        kinds=read_kinds(faults),
        jobs=jobs,
        minutes=minutes,
        keep_going=keep_going,
        out=out,
        shrink_s=shrink_s,
        limit_s=limit_s,
    )
    raise typer.Exit(int(command.run_explore(exploration, as_json=wants_json(output, json_flag))))


def read_range(text: str) -> range:
    """A half-open range of seeds: `0:100`. Raises Stop when it is none, or empty."""
    found = _RANGE.fullmatch(text.strip())
    seeds = range(int(found[1]), int(found[2])) if found else range(0)
    if not seeds:
        raise Stop(WRONG, f"{text} is no range of seeds", path="--seeds", way_out="Write A:B with A below B: 0:100.")
    return seeds


def read_kinds(text: str) -> list[str] | None:
    """Kinds of fault; None = all. Raises Stop for a kind that is not known."""
    if text.strip() == "all":
        return None
    known = loaded("evenflow.sim.explore.faults").FAULTS
    kinds = [] if text.strip() == "none" else [name.strip() for name in text.split(",")]
    for name in kinds:
        if name not in known:
            way_out = f"Known are all, none, {', '.join(sorted(known))}."
            raise Stop(WRONG, f"there is no kind of fault {name!r}", path="--faults", way_out=way_out)
    return list(dict.fromkeys(kinds))
