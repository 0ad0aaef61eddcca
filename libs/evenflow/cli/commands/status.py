"""`evenflow status TASK`: everything about a task."""

from __future__ import annotations

import time
from typing import Any

from evenflow.cli import words
from evenflow.cli.commands.list_tasks import where_or_why
from evenflow.cli.connection import fetch
from evenflow.cli.options import (
    URL,
    Form,
    FormOption,
    JsonOption,
    TaskArgument,
    TenantOption,
    UrlOption,
    wants_json,
)
from evenflow.cli.output import SIGNS, facts, say, show_json, table


def status(
    task: TaskArgument,
    tenant: TenantOption = "default",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Show everything about a task: state, attempts, places, checkpoints, cost so far."""
    from evenflow.client import calls

    found = fetch(url, calls.status(task, tenant))
    if wants_json(output, json_flag):
        show_json(found)
        return
    now_ms = time.time_ns() // 1_000_000
    facts(
        (
            ("task", f"{found['task']}{'  ' + found['name'] if found['name'] else ''}"),
            ("state", f"{SIGNS.get(found['state'], ' ')} {found['state']}, {_ago(found['since_ms'], now_ms)}"),
            ("flag", "unreachable" if found["unreachable"] else ""),
            ("queue", f"{found['queue']}, priority {found['priority']}"),
            ("submitted", words.clock(found["submitted_ms"])),
            ("waits for" if not found["end"] else "ended", where_or_why(found) if not found["nodes"] else ""),
            ("position", found["position"] or ""),
            ("progress", words.span(found["progress_ms"]) if found["progress_ms"] else ""),
            ("failures", found["failures"] or ""),
            ("cost so far", words.money(found["cost_micro"], found.get("currency", ""))),
            ("permalink", f"{url.rstrip('/')}{found['permalink']}"),
        )
    )
    if found["attempts"]:
        say("")
        table(
            (">ATTEMPT", ">MEMBER", "NODE", "SITE", "STATE", ">RAN", ">PROGRESS", "RESUMED AT", "END"),
            (line for attempt in found["attempts"] for line in _members(attempt)),
            empty="",
        )
    if found["checkpoints"]:
        say("")
        table(
            (">CHECKPOINT", ">GENERATION", ">PROGRESS", ">SIZE", "SITE", "STATE"),
            (
                (
                    row["checkpoint"],
                    row["generation"],
                    words.span(row["progress_ms"]),
                    words.size(row["size_bytes"]),
                    row["site"],
                    row.get("state", ""),
                )
                for row in found["checkpoints"]
            ),
            empty="",
        )


def _ago(since_ms: int, now_ms: int) -> str:
    return f"for {words.span(max(0, now_ms - since_ms))}"


def _members(attempt: dict[str, Any]) -> list[tuple[Any, ...]]:
    end = " ".join(part for part in (attempt["end"], attempt["cause"]) if part)
    return [
        (
            attempt["attempt"],
            member["member"],
            member["node"],
            member["site"],
            member["state"],
            words.span(member["run_ms"]),
            words.span(member["progress_ms"]),
            words.span(member["resumed_progress_ms"]) if member["resumed_progress_ms"] else "",
            end or member.get("message", ""),
        )
        for member in attempt["members"]
    ]
