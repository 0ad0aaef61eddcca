"""`evenflow cancel TASK`."""

from __future__ import annotations

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


def cancel(
    task: TaskArgument,
    reason: ReasonOption = "",
    tenant: TenantOption = "default",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Ask for a task's end, whatever it is doing."""
    from evenflow.client import calls

    answer = fetch(url, calls.cancel(task, tenant, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    elif answer["requested"]:
        say(f"cancellation of {task} requested; evenflow status {task} shows when it is over")
    else:
        say(f"{task} is {answer['state']} already")
