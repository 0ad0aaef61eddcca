"""`evenflow submit FILE`: hand in a task specification as it was written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import connected, raw
from evenflow.cli.exits import FAILED, WRONG, Stop
from evenflow.cli.options import URL, Form, FormOption, JsonOption, ReasonOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json


def submit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - reads standard input.")],
    reason: ReasonOption = "",
    wait: Annotated[float, typer.Option("--wait", min=0, max=25, help="Seconds to wait for the decision.")] = 5.0,
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Submit a task specification and say what was decided."""
    from evenflow.client import calls

    document = read_file(file)
    with connected(url) as client:
        answer = raw(client, calls.submit(document, round(wait * 1000), reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        for line in told(answer, url):
            say(line)
    status = answer.get("status") or {}
    if status.get("state") == "rejected":
        raise Stop(FAILED, status.get("message") or "the task was rejected", path=status.get("path", ""))


def read_file(name: str) -> bytes:
    """A file's bytes, or standard input's. Raises Stop."""
    if name == "-":
        return sys.stdin.buffer.read(2**20 + 1)
    try:
        with Path(name).open("rb") as file:
            return file.read(2**20 + 1)
    except OSError as error:
        raise Stop(WRONG, f"{name} can't be read: {error.strerror}", way_out="Name a file that is there.") from error


def told(answer: dict[str, Any], url: str) -> list[str]:
    """The answer in words."""
    task = answer["task"]
    status = answer.get("status")
    again = " (was submitted before)" if answer["known"] else ""
    if status is None or not status.get("decided"):
        lines = [f"{task} submitted{again}; no decision yet"]
    elif status["state"] == "queued":
        reasons = "; ".join(words.reason(row) for row in status["reasons"]) or "its turn comes"
        lines = [f"{task} queued{again}: {reasons}"]
    elif status["nodes"]:
        lines = [f"{task} {status['state']}{again} on {', '.join(status['nodes'])}"]
    else:
        lines = [f"{task} {status['state']}{again}"]
    return [*lines, f"  {url.rstrip('/')}{answer['permalink']}", f"  evenflow status {task}   evenflow why {task}"]
