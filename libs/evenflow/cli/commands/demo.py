"""`evenflow demo`: four sites made of a recorded fleet, joined, and what that was worth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.commands.scenario import loaded
from evenflow.cli.options import Form, FormOption, JsonOption, wants_json


def demo(
    out: Annotated[Path | None, typer.Option(help="Keep the log there.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Only the first N arrivals: a quick look.")] = None,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Run the main job on recorded load and print what joining was worth."""
    run_demo = loaded("evenflow.sim.demo.run").run_demo
    raise typer.Exit(int(run_demo(out=out, as_json=wants_json(output, json_flag), task_count=tasks) or 0))
