"""`evenflow acls`: who may do what on the log, and writing that to a Kafka cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.options import Form, FormOption, JsonOption, wants_json
from evenflow.cli.output import say, show_json

app = typer.Typer(help="Who may do what on the log: the list from the registry of streams.")

AgentsOption = Annotated[bool, typer.Option("--agents-on-log", help="Agents read and write the log themselves.")]
SettingsOption = Annotated[Path | None, typer.Option(help="YAML or TOML with settings of the host.")]


@app.callback(invoke_without_command=True)
def show(
    context: typer.Context,
    agents_on_log: AgentsOption = False,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Print the list: a user, what it may do, and on what. A name that ends in * stands for all that begin so."""
    from evenflow.platform.security.permissions import permissions

    if context.invoked_subcommand is not None:
        return
    rows = [permission.row() for permission in permissions(agents_on_log=agents_on_log)]
    if wants_json(output, json_flag):
        show_json({"permissions": rows})
        return
    for row in rows:
        name = f"{row['name']}{'*' if row['prefixed'] else ''}"
        say(f"{row['user']:22} {row['operation']:16} {row['resource']:16} {name}")
    say(f"{len(rows)} permissions; evenflow acls apply, as an administrator, writes them to EVENFLOW_HOST_LOG")


@app.command()
def apply(
    settings: SettingsOption = None,
    agents_on_log: AgentsOption = False,
    output: FormOption = Form.TABLE,
    json_flag: JsonOption = False,
) -> None:
    """Create the topics that are missing, then add the permissions that are missing; nothing is taken away.

    The log and who logs in to it: EVENFLOW_HOST_LOG, _LOG_USER, _LOG_PASSWORD_FILE, _LOG_CA_FILE.
    """
    from evenflow.hosting.permitting import apply_permissions

    applied = asyncio.run(apply_permissions(settings, agents_on_log=agents_on_log))
    if wants_json(output, json_flag):
        show_json({"added": [one.row() for one in applied.added], "beyond": list(applied.beyond)})
        return
    for line in applied.beyond:
        say(f"beyond the list: {line}")
    say(f"{len(applied.added)} permissions added")
