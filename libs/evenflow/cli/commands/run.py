"""`evenflow run SERVICE`: one service in a process of its own, on connected servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="A service's name, as placement.")],
    settings: Annotated[Path | None, typer.Option(help="YAML or TOML with settings of the host and services.")] = None,
) -> None:
    """Run one service until it is told to stop. Log and stores: EVENFLOW_HOST_LOG, _DOCUMENTS, _LIVE, _OBJECTS."""
    from evenflow.hosting.single import run_service

    raise typer.Exit(run_service(service, settings))
