"""One service in a process of its own, on connected servers: what `evenflow run` does."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from evenflow.hosting.composition import DOORS, Composition, kind_named
from evenflow.hosting.registry import ServiceKind
from evenflow.hosting.signals import until_told
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.collector import tune_collector
from evenflow.platform.settings import load_settings


def run_service(name: str, file: Path | None) -> int:
    """Run until told to stop; returns the exit code. Raises Refused for wrong settings."""
    kind = kind_named(name)
    host = load_settings(HostSettings, "host", file=file, environment=os.environ)
    chosen = load_settings(kind.settings, kind.name, file=file, environment=os.environ)
    return asyncio.run(_run(host, kind, chosen))


async def _run(host: HostSettings, kind: ServiceKind, chosen: Any) -> int:
    told = until_told()
    composition = Composition(Surroundings(host))
    if kind.name in DOORS:
        composition.add_doors(kind.name)
    composition.add_service(kind.name, chosen)
    tune_collector()
    await composition.run(told)
    return 0
