"""`evenflow dlq`: records that could not be handled."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.exits import WRONG, Stop
from evenflow.cli.options import URL, Form, FormOption, JsonOption, LimitOption, ReasonOption, UrlOption, wants_json
from evenflow.cli.output import facts, say, show_json, table

app = typer.Typer(no_args_is_help=True, help="Dead letters: records that could not be handled.")

PlaceArgument = Annotated[str, typer.Argument(metavar="PLACE", help="topic/partition/offset, as `dlq list` shows it.")]


@app.command("list")
def listed(
    topic: Annotated[str, typer.Option(help="Letters of this topic.")] = "",
    state: Annotated[str, typer.Option(help="open, retried, dropped, or all.")] = "open",
    limit: LimitOption = 50,
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """List dead letters, newest first."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("dlq", topic=topic, state=state, limit=limit))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("PLACE", "WHEN", "PARKED BY", "KEY", ">SIZE", "WHY", "STATE"),
        (
            (
                f"{row['topic']}/{row['partition']}/{row['offset']}",
                words.clock(row["at_ms"]),
                row["service"],
                row["key"][:40],
                words.size(row["size_bytes"]),
                f"{row['code']}: {row['problem']}",
                row["state"],
            )
            for row in answer["items"]
        ),
        empty="no dead letters",
    )


@app.command()
def show(
    place: PlaceArgument, url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False
) -> None:
    """Show a letter: why it was parked, its headers and its text."""
    from evenflow.client import calls

    row = fetch(url, calls.letter(*read_place(place)))
    if wants_json(output, json_flag):
        show_json(row)
        return
    facts(
        (
            ("origin", row["origin"]),
            ("why", f"{row['code']}: {row['problem']}"),
            ("parked by", row["service"]),
            ("when", words.clock(row["at_ms"])),
            ("key", row["key"]),
            ("state", row["state"]),
            *((f"header {header['name']}", header["value"]) for header in row["headers"]),
        )
    )
    say("")
    say(row["text"] if row["text"] is not None else f"(not text) base64: {row['value_base64']}")


@app.command()
def retry(
    place: PlaceArgument,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Put a record back on its topic with its own key, bytes and headers."""
    from evenflow.client import calls

    call = calls.letter(*read_place(place), action="retry", reason=reason)
    _done(fetch(url, call), as_json=wants_json(output, json_flag))


@app.command()
def drop(
    place: PlaceArgument,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Set a letter aside."""
    from evenflow.client import calls

    call = calls.letter(*read_place(place), action="drop", reason=reason)
    _done(fetch(url, call), as_json=wants_json(output, json_flag))


def _done(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        show_json(answer)
    else:
        said = "put back on its topic" if answer["requested"] == "retry" else "set aside"
        say(f"{answer['origin']} was {said}")


def read_place(place: str) -> tuple[str, int, int]:
    """topic/partition/offset. Raises Stop."""
    topic, _, rest = place.partition("/")
    partition, _, offset = rest.partition("/")
    if not topic or not (partition.isascii() and partition.isdigit()) or not (offset.isascii() and offset.isdigit()):
        raise Stop(
            WRONG,
            f"{place!r} is no place",
            path="PLACE",
            way_out="Write topic/partition/offset, as `evenflow dlq list` shows it.",
        )
    return topic, int(partition), int(offset)
