"""`evenflow priority TASK NUMBER`."""

from __future__ import annotations

from typing import Annotated

import typer

from evenflow.cli.connection import fetch
from evenflow.cli.options import (
    URL,
    Form,
    FormOption,
    JsonOption,
    ReasonOption,
    TaskArgument,
    TenantOption,
    UrlOption,
    wants_json,
)
from evenflow.cli.output import say, show_json


def priority(
    task: TaskArgument,
    number: Annotated[int, typer.Argument(min=0, max=1000, metavar="NUMBER", help="0 to 1000, higher first.")],
    reason: ReasonOption = "",
    tenant: TenantOption = "default",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Ask for another priority of a task."""
    from evenflow.client import calls

    answer = fetch(url, calls.reprioritise(task, tenant, number, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        say(f"priority {number} of {task} requested")
