"""The `evenflow` command. Exit codes stand in `exits`, one command a file in `commands`."""

from __future__ import annotations

import os
import sys
from typing import Final

import typer

from evenflow.cli import exits
from evenflow.cli.connection import access
from evenflow.cli.registry import COMMANDS, GROUPS
from evenflow.core.errors import EvenflowError

app: Final = typer.Typer(
    help="Evenflow joins scattered compute sites into one pool. `evenflow dev` runs everything on this machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog="Exit codes: 0 done, 1 failed, 2 wrong input, 3 planned, 4 no server, 5 no such thing.",
)
app.callback()(access)
for name, command in COMMANDS.items():
    app.command(name)(command)
for name, group in GROUPS.items():
    app.add_typer(group, name=name)


def run(arguments: list[str] | None = None) -> None:
    """Run the command line; ends the process with its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    joined = " ".join(given)
    forms = ("--json", "-o json", "-ojson", "--output json", "--output=json")
    as_json = any(form in joined for form in forms)
    try:
        app(given, prog_name="evenflow")
    except EvenflowError as error:
        exits.end(exits.explained(error), as_json=as_json)
    except KeyboardInterrupt:
        sys.exit(exits.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what reads us has seen enough
        sys.exit(exits.DONE)
