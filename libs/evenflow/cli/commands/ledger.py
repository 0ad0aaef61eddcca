"""`evenflow ledger`: what it cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.exits import FAILED, Stop
from evenflow.cli.options import URL, Form, FormOption, JsonOption, LimitOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json, table


def ledger(
    queue: Annotated[str, typer.Option(help="Lines of this queue.")] = "",
    task: Annotated[str, typer.Option(help="Lines of this task.")] = "",
    tenant: Annotated[str, typer.Option(help="The task's tenant.")] = "default",
    limit: LimitOption = 50,
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """List ledger lines with their sums; exit 1 when a queue's chain of hashes does not hold."""
    from evenflow.client import calls

    answer = fetch(url, calls.ledger(queue=queue, task=task, tenant=tenant, limit=limit))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        _print(answer)
    broken = [book for book in answer["queues"] if not book["verified"]]
    if broken:
        first = broken[0]
        raise Stop(
            FAILED,
            f"the ledger of {first['queue']} is broken at line {first['broken_at']}: {first['broken_why']}",
            way_out="Compare that line on evenflow.billing.v1 with its archive.",
        )


def _print(answer: dict[str, Any]) -> None:
    table(
        ("QUEUE", ">LINE", "KIND", "TASK", ">ATTEMPT", "NODE", ">DURATION", ">DEVICE TIME", ">BYTES", ">AMOUNT"),
        (
            (
                row["queue"],
                row["number"],
                row["kind"],
                row["task"],
                row["attempt"],
                row["node"],
                words.span(row["duration_ms"]),
                words.span(row["device_milli_ms"] // 1000),
                words.size(row["bytes"]) if row["bytes"] else "",
                words.money(row["amount_micro"], row["currency"]),
            )
            for row in answer["items"]
        ),
        empty="nothing was charged yet",
    )
    sums = answer["sums"]
    of_devices = words.span(sums["device_milli_ms"] // 1000)
    say(f"{sums['line_count']} lines, {words.money(sums['amount_micro'])}, {of_devices} of devices")
    for kind, part in sums["by_kind"].items():
        say(f"  {kind}: {part['line_count']} lines, {words.money(part['amount_micro'])}")
    say("chains hold" if answer["verified"] else "a chain is broken")
