"""One service in a process of its own, on connected servers: what `evenflow run` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenflow.core.errors import FieldRefused
from evenflow.hosting.composition import DOORS, Composition, kind_named
from evenflow.hosting.registry import ServiceKind
from evenflow.hosting.signals import until_told
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.collector import tune_collector
from evenflow.platform.settings import Settings, load_settings, read_table


def run_service(name: str, file: Path | None) -> int:
    """Run until told to stop; returns the exit code. Raises Refused for wrong settings."""
    kind = kind_named(name)
    host = load_settings(HostSettings, "host", file=file, environment=os.environ)
    chosen = service_settings(kind, file)
    return asyncio.run(_run(host, kind, chosen))


def service_settings(kind: ServiceKind, file: Path | None, base: Mapping[str, Any] | None = None) -> Any:
    """A service's settings from file and environment, over `base` or the defaults. Raises FieldRefused."""
    if issubclass(kind.settings, Settings):
        return load_settings(kind.settings, kind.name, file=file, environment=os.environ)
    given = {**(base or {}), **(read_table(file).get(kind.name, {}) if file is not None else {})}
    prefix = f"EVENFLOW_{kind.name}_".replace("-", "_").upper()
    for variable, text in sorted(os.environ.items()):
        if variable.startswith(prefix):
            given[variable.removeprefix(prefix).lower()] = text
    try:
        return kind.settings.model_validate(given)
    except ValueError as error:
        raise FieldRefused(kind.name, " ".join(str(error).split())[:300]) from None


async def _run(host: HostSettings, kind: ServiceKind, chosen: Any) -> int:
    told = until_told()
    composition = Composition(Surroundings(host))
    if kind.name in DOORS:
        composition.add_doors(kind.name)
    composition.add_service(kind.name, chosen)
    tune_collector()
    await composition.run(told)
    return 0
