"""`evenflow sites`."""

from __future__ import annotations

from typing import Any

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, UrlOption, wants_json
from evenflow.cli.output import show_json, table


def sites(url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List sites with the sums of their nodes."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("sites"))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("SITE", "REGION", ">NODES OK", ">SUSPECT", ">LOST", ">DEVICES HELD", ">CORES HELD"),
        (_line(row) for row in answer["items"]),
        empty="no site is known; a node brings its site with it",
    )


def _line(row: dict[str, Any]) -> tuple[Any, ...]:
    held, capacity = row["held"], row["capacity"]
    return (
        row["site"],
        (row["document"] or {}).get("region", ""),
        row["nodes"]["ok"],
        row["nodes"]["suspect"],
        row["nodes"]["lost"],
        f"{words.cores(held['devices_milli'])} of {words.cores(capacity['devices_milli'])}",
        f"{words.cores(held['cpu_milli'])} of {words.cores(capacity['cpu_milli'])}",
    )
