"""`evenflow signers`: who may sign submissions that are written straight to the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.connection import fetch
from evenflow.cli.options import URL, Form, FormOption, JsonOption, ReasonOption, UrlOption, wants_json
from evenflow.cli.output import say, show_json, table

app = typer.Typer(no_args_is_help=True, help="Signers of submissions on the log: make a key, add, list, revoke.")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The signer's name, as it stands in its records.")]


@app.command("new-key")
def new_key(file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the private key goes.")]) -> None:
    """Make a key pair: the private half into a file that you alone can read, the public half on the screen."""
    from evenflow.platform.security import identity

    key = identity.new_key()
    identity.save_key(file, key)
    say(identity.public_text(key))


@app.command()
def add(
    name: NameArgument,
    key: Annotated[str, typer.Option("--key", help="The public key, 64 hexadecimal digits.")],
    tenant: Annotated[list[str], typer.Option("--tenant", help="In whose name it may submit; several, or '*'.")],
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Let the holder of a key submit in the name of tenants."""
    from evenflow.client import calls

    answer = fetch(url, calls.put_signer(name, key, tenant, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        say(f"{name} may submit for {', '.join(answer['tenants'])}")


@app.command("list")
def listed(url: UrlOption = URL, output: FormOption = Form.TABLE, json_flag: JsonOption = False) -> None:
    """List the signers."""
    from evenflow.client import calls

    answer = fetch(url, calls.listing("signers"))
    if wants_json(output, json_flag):
        show_json(answer)
        return
    table(
        ("NAME", "TENANTS", "PUBLIC KEY", "STATE"),
        (
            (row["name"], ", ".join(row["tenants"]), row["public_key"], "revoked" if row["revoked"] else "living")
            for row in answer["items"]
        ),
        empty="nobody may sign yet; add one with: evenflow signers add NAME --key … --tenant …",
    )


@app.command()
def revoke(
    name: NameArgument,
    reason: ReasonOption = "",
    url: UrlOption = URL,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Take a signer's right back: what it signs from now on is refused."""
    from evenflow.client import calls

    answer = fetch(url, calls.revoke_signer(name, reason))
    if wants_json(output, json_flag):
        show_json(answer)
    else:
        say(f"{name} is revoked")
