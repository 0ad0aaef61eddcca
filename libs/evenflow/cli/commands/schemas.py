"""`evenflow schemas`: write the published schemas, or check that they are in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.exits import FAILED, WRONG, Stop
from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import say, show_json

app = typer.Typer(no_args_is_help=True, help="JSON Schema, Avro, AsyncAPI and OpenAPI of everything that travels.")

RootOption = Annotated[Path, typer.Option("--root", help="The repository's folder.")]


@app.command()
def write(root: RootOption = Path(), output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """Write schemas/ from the event contracts and the API's routes; what was released may only grow."""
    from evenflow.events.schema.files import write as write_files
    from evenflow.hosting.openapi import write_openapi

    folder = _folder(root)
    paths = [*write_files(folder), *write_openapi(folder)]
    if wants_json(output, json_flag):
        show_json({"written": paths})
    else:
        for path in paths:
            say(path)


@app.command()
def check(root: RootOption = Path(), output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """Fail when schemas/ drifted from contracts and routes, or broke compatibility."""
    from evenflow.events.schema.files import check as check_files
    from evenflow.hosting.openapi import check_openapi

    folder = _folder(root)
    problems = [*check_files(folder), *check_openapi(folder)]
    if wants_json(output, json_flag):
        show_json({"problems": problems})
    else:
        for problem in problems:
            say(problem)
    if problems:
        raise Stop(
            FAILED, f"{len(problems)} problems", way_out="Run `evenflow schemas write` and look at what changed."
        )


def _folder(root: Path) -> Path:
    if not (root / "schemas").is_dir():
        raise Stop(WRONG, f"{root} holds no folder schemas", path="--root", way_out="Run it at the repository's root.")
    return root
