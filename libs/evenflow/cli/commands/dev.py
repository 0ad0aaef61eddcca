"""`evenflow dev`: everything in one process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def dev(
    data: Annotated[Path | None, typer.Option(help="Keep everything there; without it nothing survives.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="The console's port; 0 = any.")] = 7070,
    gateway_port: Annotated[int, typer.Option(min=0, max=65_535, help="The agents' port; 0 = any.")] = 7071,
    no_load: Annotated[bool, typer.Option("--no-load", help="Submit nothing by itself.")] = False,
    no_agents: Annotated[bool, typer.Option("--no-agents", help="No simulated nodes.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the load.")] = 1,
    profile: Annotated[
        str, typer.Option(help="embedded, or local: on the servers that make up PROFILE=local started.")
    ] = "embedded",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="More of the log.")] = False,
) -> None:
    """Run everything in one process: three sites of simulated nodes, a gentle load, the API on localhost."""
    from evenflow.hosting.dev import DevOptions, run_dev

    options = DevOptions(
        folder=data,
        console_port=port,
        gateway_port=gateway_port,
        load=not no_load,
        agents=not no_agents,
        seed=seed,
        verbose=verbose,
        profile=profile,
    )
    raise typer.Exit(run_dev(options))
