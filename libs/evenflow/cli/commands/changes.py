"""`evenflow changes`: who changed what, when, why and from where; refused changes too."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, LimitOption, UrlOption, wants_json
from evenflow.cli.output import show_json, table


def changes(
    subject: Annotated[str, typer.Option(help="Changes of this, as queue/research or tenant/task.")] = "",
    actor: Annotated[str, typer.Option(help="Changes by this token or user.")] = "",
    limit: LimitOption = 50,
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Show who changed what, newest first, and who was refused."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("changes", subject=subject, actor=actor, limit=limit))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("WHEN", "WHO", "ROLE", "FROM", "WHAT", "OF", "OUTCOME", "REASON"),
        (_line(row) for row in answer["items"]),
        empty="nothing was changed yet",
    )


def _line(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        words.clock(row["at_ms"]),
        row["actor"],
        row["role"],
        row["address"],
        row["action"],
        row["subject"],
        row["outcome"],
        row["reason"],
    )
