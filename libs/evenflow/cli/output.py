"""What commands print: one JSON value, or tables for people. Rich is loaded only where a table is drawn."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from evenflow.cli.exits import printable

if TYPE_CHECKING:
    from rich.console import Console

#: Columns where the output is no terminal.
WIDE: Final = 200
#: A state's sign, so that colour is never the only difference.
SIGNS: Final = {
    "queued": "○",
    "starting": "◔",
    "running": "●",
    "stopping": "◑",
    "succeeded": "✓",
    "failed": "✕",
    "cancelled": "–",
    "rejected": "✕",
    "ok": "●",
    "suspect": "◔",
    "lost": "✕",
}
COLOURS: Final = {
    "running": "green",
    "succeeded": "green",
    "ok": "green",
    "queued": "yellow",
    "starting": "cyan",
    "stopping": "cyan",
    "suspect": "yellow",
    "failed": "red",
    "rejected": "red",
    "lost": "red",
}


def show_json(value: Any) -> None:
    """One value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """One line for people; what came from elsewhere is made printable."""
    sys.stdout.write(printable(text) + "\n")
    sys.stdout.flush()


def console() -> Console:
    """Rich's console on standard output; wide where no terminal sets a width."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str) -> None:
    """A table; `empty` says what to do when there is no row. A column whose name begins with > stands to the right."""
    from rich.table import Table
    from rich.text import Text

    lines = [tuple(rows_) for rows_ in rows]
    if not lines:
        say(empty)
        return
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        drawn.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    for line in lines:
        drawn.add_row(*(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in line))
    console().print(drawn)


def state_cell(state: str, note: str = "") -> Any:
    """A state with its sign and colour."""
    from rich.text import Text

    return Text(f"{SIGNS.get(state, ' ')} {printable(state)}{note}", style=COLOURS.get(state, ""))


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one a line; empty values are left out."""
    shown = [(name, str(value)) for name, value in pairs if value not in ("", None, (), [], {})]
    width = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        say(f"{name.ljust(width)}  {value}")
