"""`evenflow why TASK`: what it waits for, or why it is where it is."""

from __future__ import annotations

from typing import Any

from evenflow.cli import words
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
from evenflow.cli.output import say, show_json


def why(
    task: TaskArgument,
    tenant: TenantOption = "default",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Name everything that a task waits for, with its arithmetic; or where it runs and why there."""
    from evenflow.client import calls

    found = fetch(url, calls.of_task(task, "why", tenant))
    if wants_json(output, json_flag):
        show_json(found)
        return
    say(f"{found['task']} is {found['state']}, for {words.span(found['for_ms'])}")
    if found["state"] == "queued":
        _waiting(found)
    elif "places" in found:
        _placed(found)
    else:
        for line in (found.get("cause"), found.get("message")):
            if line:
                say(f"  {line}")
        _reasons(found["reasons"])
    view = found["view"]
    say(f"seen {words.span(view['age_ms'])} ago; round {view['round']}")


def _reasons(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        say(f"  - {words.reason(row)}")
        if row.get("way_out"):
            say(f"      {row['way_out']}")


def _waiting(found: dict[str, Any]) -> None:
    if not found["decided"]:
        say("  placement has not spoken of it yet")
        return
    if found["position"]:
        say(f"  position {found['position']} in {found['queue']}")
    _reasons(found["reasons"])
    if found["crossing"]:
        _terms(found["crossing"])


def _placed(found: dict[str, Any]) -> None:
    for place in found["places"]:
        devices = ", ".join(f"{d['index']}: {words.cores(d['milli'])}" for d in place["devices"])
        say(
            f"  member {place['member']} on {place['node']} at {place['site']}"
            + (f", devices {devices}" if devices else "")
        )
    say(f"  attempt {found['attempt']}, decided in round {found['round']} after {words.span(found['waited_ms'])}")
    for row in found["waited_for"]:
        say(f"  waited for {words.reason(row)}")
    if found["crossing"]:
        _terms(found["crossing"])


def _terms(terms: dict[str, Any]) -> None:
    taken = "crosses" if terms["taken"] else "does not cross"
    data = f"{terms['dataset']}, {words.size(terms['bytes'])}"
    say(f"  {taken} from {terms['from_site']} to {terms['to_site']} with {data}")
    say(
        f"    stay: {words.span(terms['stay_wait_ms'])} wait + {words.span(terms['stay_run_ms'])} run, "
        f"{words.money(terms['stay_cost_micro'])}"
    )
    say(
        f"    cross: max({words.span(terms['transfer_in_ms'])} in, {words.span(terms['cross_wait_ms'])} wait) + "
        f"{words.span(terms['cross_run_ms'])} run + {words.span(terms['transfer_out_ms'])} out, "
        f"{words.money(terms['cross_cost_micro'])} + {words.money(terms['transfer_cost_micro'])} transfer"
    )
    gain = words.money(terms["gain_micro"]) if terms["by_money"] else f"{terms['gain_ms'] / 1000:g} s"
    say(f"    gain {gain}, margin {terms['margin_ppm'] / 10_000:g} %")
