"""`evenflow list`: tasks, newest submission first."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, LimitOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json, state_cell, table


def list_tasks(
    state: Annotated[str, typer.Option(help="One state, or several with commas.")] = "",
    queue: Annotated[str, typer.Option(help="Tasks of this queue.")] = "",
    site: Annotated[str, typer.Option(help="Tasks placed at this site.")] = "",
    prefix: Annotated[str, typer.Option(help="Ids that begin so.")] = "",
    tenant: Annotated[str, typer.Option(help="Tasks of this tenant.")] = "",
    limit: LimitOption = 50,
    after: Annotated[str, typer.Option(help="The `next` of the page before.")] = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """List tasks, newest submission first."""
    from evenflow.client import calls

    call = calls.tasks(state=state, queue=queue, site=site, prefix=prefix, tenant=tenant, limit=limit, after=after)
    answer = fetch(url, call)
    if wants_json(output, json_flag):
        show_json(answer)
        return
    now_ms = time.time_ns() // 1_000_000
    table(
        ("TASK", "STATE", "QUEUE", ">PRIO", "SINCE", "WHERE / WHY", ">COST"),
        (_line(row, now_ms) for row in answer["items"]),
        empty="no task matches; submit one with: evenflow submit FILE",
    )
    if answer["next"]:
        say(f"more: evenflow list --after {answer['next']}")


def _line(row: dict[str, Any], now_ms: int) -> tuple[Any, ...]:
    note = " (unreachable)" if row["unreachable"] else ""
    return (
        row["task"] if row["tenant"] == "default" else f"{row['tenant']}/{row['task']}",
        state_cell(row["state"], note),
        row["queue"],
        row["priority"],
        words.span(max(0, now_ms - row["since_ms"])),
        where_or_why(row),
        words.money(row["cost_micro"]),
    )


def where_or_why(row: dict[str, Any]) -> str:
    """Its nodes once it has some, else what it waits for or how it ended."""
    if row["reasons"]:
        more = f" (+{len(row['reasons']) - 1})" if len(row["reasons"]) > 1 else ""
        return words.reason(row["reasons"][0]) + more
    if row["end"]:
        return str(row["message"] or row["cause"])
    return ", ".join(row["nodes"])
