"""Options that many commands share: the server, the tenant, the form of what is printed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import typer

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


def wants_json(form: Form, flag: bool) -> bool:
    """Whether JSON was asked for, either way."""
    return flag or form is Form.JSON
