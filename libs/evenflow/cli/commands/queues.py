"""`evenflow queues`."""

from __future__ import annotations

from typing import Any

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, UrlOption, wants_json
from evenflow.cli.output import show_json, table


def queues(url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List queues: limits, what they hold, how many of their tasks wait and run."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("queues"))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("QUEUE", ">WAITING", ">STARTING", ">RUNNING", ">STOPPING", ">DEVICES", ">CORES", ">SPENT"),
        (_line(row) for row in answer["items"]),
        empty="no queue is known",
    )


def _line(row: dict[str, Any]) -> tuple[Any, ...]:
    tasks = row["tasks"]
    return (
        row["queue"] if row["known"] else f"{row['queue']} (no document)",
        tasks["queued"],
        tasks["starting"],
        tasks["running"],
        tasks["stopping"],
        _against(row, "devices_milli"),
        _against(row, "cpu_milli"),
        words.money(row["spent_micro"], row["currency"]),
    )


def _against(row: dict[str, Any], amount: str) -> str:
    limit = row.get("limit", {}).get(amount)
    held = words.cores(row["held"][amount])
    return held if limit is None else f"{held} of {words.cores(limit)}"
