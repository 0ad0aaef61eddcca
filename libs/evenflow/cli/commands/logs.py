"""`evenflow logs TASK`: what a member printed, followed if asked."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evenflow.cli.connection import connected
from evenflow.cli.options import URL, TaskArgument, TenantOption, UrlOption


def logs(
    task: TaskArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on while it prints.")] = False,
    attempt: Annotated[int, typer.Option(min=0, help="Which attempt; 0 = the newest.")] = 0,
    member: Annotated[int, typer.Option(min=0, help="Which member of a gang.")] = 0,
    tenant: TenantOption = "default",
    url: UrlOption = URL,
) -> None:
    """Print what a task's member printed."""
    with connected(url) as client:
        wanted = {
            "attempt": attempt or None,
            "member": member or None,
            "tenant": tenant,
            "follow": "true" if follow else None,
        }
        for chunk in client.output(task, **wanted):
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
