"""`evenflow links`."""

from __future__ import annotations

from typing import Any

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, UrlOption, wants_json
from evenflow.cli.output import show_json, table


def links(url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List directed links with what was measured, how old and how sure it is."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("links"))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        (
            "FROM",
            "TO",
            "VERDICT",
            ">BANDWIDTH",
            ">DECLARED",
            ">ROUND TRIP",
            ">LOSS",
            ">CONFIDENCE",
            ">MEASURED",
            ">PER GB",
        ),
        (_line(row) for row in answer["items"]),
        empty="no link is known; publish one with: evenflow documents put link east..west FILE",
    )


def _line(row: dict[str, Any]) -> tuple[Any, ...]:
    verdict = "degraded" if row["degraded"] else "ok" if row["reachable"] else "unreachable"
    return (
        row["from_site"],
        row["to_site"],
        verdict,
        words.rate(row["bandwidth_bits"]),
        words.rate(row["declared_bandwidth_bits"]),
        f"{row['round_trip_us'] / 1000:g} ms",
        f"{row['loss_ppm'] / 10_000:g} %",
        f"{row['confidence_ppm'] / 10_000:.0f} %",
        f"{words.span(row['age_ms'])} ago",
        words.money(row["price_per_gb_micro"]),
    )
