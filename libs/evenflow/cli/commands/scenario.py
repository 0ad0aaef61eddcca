"""`evenflow scenario`: run scenario files on the production services, list what they may use."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated, Any

import typer

from evenflow.cli.exits import unavailable
from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import say, show_json

app = typer.Typer(no_args_is_help=True, help="Rehearse outages and policies on the virtual clock.")


@app.command()
def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Scenario files.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed than the file's.")] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100_000, help="Seeds seed … seed + N - 1.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Keep events, timeline, usage, ledger and summary there.")] = None,
    lean: Annotated[bool, typer.Option("--lean", help="Without the broker library's stack, as explored.")] = False,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Run scenarios. Exit 0: all hold; 1: one does not; 2: a file is wrong; 3: a file uses a planned feature."""
    command = loaded("evenflow.sim.command")
    as_json = wants_json(output, json_flag)
    code = command.run_files(files, seed=seed, repeat=repeat, out=out, lean=lean, as_json=as_json)
    raise typer.Exit(int(code))


@app.command()
def verbs(output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List every field, verb, setting and expectation: ready or planned."""
    listed: dict[str, Any] = loaded("evenflow.sim.scenario.catalogue").catalogue()
    if wants_json(output, json_flag):
        show_json(listed)
        return
    for part, rows in listed.items():
        say(part)
        for row in rows:
            name = row.get("verb") or row.get("form") or row.get("field")
            say(f"  {row.get('status', ''):<8} {name}  {row.get('about', '')}".rstrip())


def loaded(module: str) -> Any:
    """A module of the simulation. Raises Stop when this installation does not carry it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        raise unavailable("the simulation") from error
