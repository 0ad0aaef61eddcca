"""Every command by name. Nothing else lists the commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import typer

from evenflow.cli.commands import acls, documents, letters, nodes, scenario, schemas, signers, simulate, tokens
from evenflow.cli.commands.agent import agent
from evenflow.cli.commands.bench import bench
from evenflow.cli.commands.cancel import cancel
from evenflow.cli.commands.changes import changes
from evenflow.cli.commands.demo import demo
from evenflow.cli.commands.dev import dev
from evenflow.cli.commands.events import events
from evenflow.cli.commands.ledger import ledger
from evenflow.cli.commands.links import links
from evenflow.cli.commands.list_tasks import list_tasks
from evenflow.cli.commands.logs import logs
from evenflow.cli.commands.priority import priority
from evenflow.cli.commands.queues import queues
from evenflow.cli.commands.run import run
from evenflow.cli.commands.sites import sites
from evenflow.cli.commands.status import status
from evenflow.cli.commands.submit import submit
from evenflow.cli.commands.version import version
from evenflow.cli.commands.why import why

COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "dev": dev,
    "demo": demo,
    "submit": submit,
    "list": list_tasks,
    "status": status,
    "why": why,
    "logs": logs,
    "events": events,
    "cancel": cancel,
    "priority": priority,
    "sites": sites,
    "links": links,
    "queues": queues,
    "ledger": ledger,
    "changes": changes,
    "agent": agent,
    "run": run,
    "bench": bench,
    "version": version,
}

GROUPS: Final[dict[str, typer.Typer]] = {
    "nodes": nodes.app,
    "documents": documents.app,
    "dlq": letters.app,
    "tokens": tokens.app,
    "signers": signers.app,
    "scenario": scenario.app,
    "simulate": simulate.app,
    "schemas": schemas.app,
    "acls": acls.app,
}
