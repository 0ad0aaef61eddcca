"""`evenflow events [TASK]`: the newest events of all streams, or the whole course of one task."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import connected, fetch, raw
from evenflow.cli.options import URL, Form, FormOption, JsonOption, LimitOption, TenantOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json


def events(
    task: Annotated[str, typer.Argument(metavar="[TASK]", help="The whole course of this task.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they come.")] = False,
    topic: Annotated[str, typer.Option(help="Events of this topic.")] = "",
    event_type: Annotated[str, typer.Option("--type", help="Of this type; may end in *.")] = "",
    node: Annotated[str, typer.Option(help="That speak of this node.")] = "",
    queue: Annotated[str, typer.Option(help="That speak of this queue.")] = "",
    limit: LimitOption = 50,
    tenant: TenantOption = "default",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Show events, one a line: JSON lines with -o json."""
    from evenflow.client import calls

    as_json = wants_json(output, json_flag)
    if task and not follow:
        answer = fetch(url, calls.of_task(task, "events", tenant))
        if as_json:
            show_json(answer)
            return
        known = {row["id"]: index for index, row in enumerate(answer["items"], 1)}
        for index, row in enumerate(answer["items"], 1):
            cause = f"  ← {known[row['cause']]}" if row["cause"] in known else ""
            say(f"{index:>4}  {_line(row)}{cause}")
        return
    wanted: dict[str, Any] = {
        "topic": topic,
        "type": event_type,
        "task": task,
        "node": node,
        "queue": queue,
        "limit": limit,
    }
    with connected(url) as client:
        if not follow:
            answer = raw(client, calls.events(0, **wanted))
            if as_json:
                show_json(answer)
                return
            rows = answer["items"]
            for row in rows:
                say(_line(row))
            return
        for row in client.follow(**wanted):
            if as_json:
                show_json(row)
            else:
                say(_line(row))


def _line(row: dict[str, Any]) -> str:
    body = row.get("body") or {}
    told = [str(body[name]) for name in ("node", "end", "cause", "state", "message", "problem") if body.get(name)]
    place = row.get("key") or " ".join(
        f"{name} {row[name]}" for name in ("attempt", "member", "node") if row.get(name) not in (None, "")
    )
    return f"{words.clock(row['time_ms'])}  {row['type']:<24} {place}  {' '.join(told)}".rstrip()
