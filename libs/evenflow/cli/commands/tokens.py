"""`evenflow tokens`: access tokens of the API."""

from __future__ import annotations

from typing import Annotated

import typer

from evenflow.cli import words
from evenflow.cli.connection import fetch
from evenflow.cli.options import (
    URL,
    Form,
    FormOption,
    JsonOption,
    ReasonOption,
    UrlOption,
    seconds_of,
    wants_json,
)
from evenflow.cli.output import say, show_json, table
from evenflow.core.lifecycle.roles import Role

app = typer.Typer(no_args_is_help=True, help="Access tokens: issue, list, revoke.")


@app.command()
def issue(
    name: Annotated[str, typer.Option("--name", help="Under which the record of changes has its bearer.")],
    role: Annotated[Role, typer.Option("--role", help="What it allows; each role includes those before it.")],
    tenant: Annotated[str, typer.Option("--tenant", help="Bounded to this tenant's tasks.")] = "",
    queue: Annotated[str, typer.Option("--queue", help="Bounded to this queue.")] = "",
    expires: Annotated[str, typer.Option("--expires", help="How long it lives: 30d, 12h; at most 366d.")] = "30d",
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Issue a token. It is printed once and kept nowhere: put it into a file that its bearer alone can read."""
    from evenflow.client import calls

    seconds = seconds_of(expires, "--expires")
    wish = {"name": name, "role": str(role), "tenant": tenant, "queue": queue, "expires_s": seconds}
    answer = fetch(url, calls.issue_token(wish, reason))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    say(answer["token"])
    until = words.clock(answer["expires_ms"])
    typer.echo(f"{role} until {until}; revoke it with: evenflow tokens revoke {answer['name']}", err=True)


@app.command("list")
def listed(url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List the tokens, without what is secret."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("tokens"))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("NAME", "ROLE", "TENANT", "QUEUE", "ISSUED", "EXPIRES", "STATE", "ID"),
        (
            (
                row["name"],
                row["role"],
                row["tenant"] or "any",
                row["queue"] or "any",
                words.clock(row["issued_ms"]),
                words.clock(row["expires_ms"]),
                row["state"],
                row["id"],
            )
            for row in answer["items"]
        ),
        empty="no token was issued; the owner's own stands in the console's settings",
    )


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="Its name or id, never its text.")],
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Revoke a token: the next request with it is refused."""
    from evenflow.client import calls

    answer = fetch(url, calls.revoke_token(token, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        say(f"{answer['name']} is revoked")
