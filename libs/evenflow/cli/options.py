"""Options that many commands share: the server, the tenant, the form of what is printed."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Final

import typer

from evenflow.cli.exits import WRONG, Stop

URL: Final = "http://127.0.0.1:7070"


class Form(StrEnum):
    """How results are printed: for people, or as one stable JSON value."""

    TABLE = "table"
    JSON = "json"


UrlOption = Annotated[str, typer.Option("--url", envvar="EVENFLOW_URL", help="The console's address.")]
FormOption = Annotated[Form, typer.Option("--output", "-o", help="table or json.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as -o json.")]
TenantOption = Annotated[str, typer.Option("--tenant", help="Whose tasks.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; kept in the record of changes.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=500, help="How many rows.")]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's id.")]


_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds_of(text: str, option: str) -> int:
    """A span as 30d, 12h, 45m or 600s in seconds. Raises Stop."""
    found = _SPAN.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise Stop(WRONG, f"{text[:40]!a} is no span", path=option, way_out="Write a number and a unit, as 30d or 12h.")
    return int(found[1]) * _SECONDS[found[2]]


def wants_json(form: Form, flag: bool) -> bool:
    """Whether JSON was asked for, either way."""
    return flag or form is Form.JSON
