"""`evenflow agent`: join this machine as a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenflow.cli.connection import SHOWN
from evenflow.cli.exits import WRONG, Stop

GATEWAY_URL = "http://127.0.0.1:7071"


def agent(
    url: Annotated[
        str, typer.Option("--url", envvar="EVENFLOW_GATEWAY_URL", help="The gateway's address.")
    ] = GATEWAY_URL,
    token: Annotated[
        str, typer.Option("--token", envvar="EVENFLOW_JOIN_TOKEN", help="A join token; needed once.")
    ] = "",
    node: Annotated[str, typer.Option("--node", help="The node's id; the machine's name if left out.")] = "",
    site: Annotated[str, typer.Option("--site", help="The site it stands at.")] = "local",
    document: Annotated[
        Path | None, typer.Option("--document", help="A node document; else this machine's size.")
    ] = None,
    transport: Annotated[
        str,
        typer.Option(
            "--transport",
            envvar="EVENFLOW_AGENT_TRANSPORT",
            help="gateway, or kafka: straight to the log of EVENFLOW_HOST_LOG, on a trusted network.",
        ),
    ] = "gateway",
    operations_port: Annotated[
        int | None,
        typer.Option(
            "--operations-port",
            min=0,
            max=65_535,
            envvar="EVENFLOW_HOST_OPERATIONS_PORT",
            help="Answer /health, /ready and /metrics there; 0 = any port.",
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="Journal, key and scratch; else under the home folder.")
    ] = None,
) -> None:
    """Join this machine: take tasks from the gateway, run them as processes, report what happens.

    With --transport kafka it needs no gateway and no token, but EVENFLOW_HOST_LOG and EVENFLOW_HOST_OBJECTS.
    """
    from evenflow.hosting.joining.machine import TRANSPORTS, AgentOptions, run_agent

    if not url.startswith(("http://", "https://")):
        raise Stop(WRONG, f"{url!r} is no address", path="--url", way_out="Write http://host:port, or https://.")
    if transport not in TRANSPORTS:
        known = " or ".join(TRANSPORTS)
        raise Stop(WRONG, f"{transport[:40]!a} is no transport", path="--transport", way_out=f"Write {known}.")
    options = AgentOptions(
        url=url, token=token, node=node, site=site, document=document, folder=data, transport=transport,
        operations_port=operations_port, ca=SHOWN.ca,
    )  # fmt: skip
    raise typer.Exit(run_agent(options))
