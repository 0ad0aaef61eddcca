"""Puts the placement service together."""

from __future__ import annotations

from evenflow.core.placement.engine import round as engine_round
from evenflow.placement.rounds import Engine
from evenflow.placement.service import PlacementService
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.runtime import Runtime


def build(
    runtime: Runtime, settings: PlacementSettings | None = None, engine: Engine = engine_round
) -> PlacementService:
    """One placement process. It needs the log alone; `engine` is replaced by benches that measure everything but it."""
    return PlacementService(runtime, settings or PlacementSettings(), engine)


#: The name under which benches build it.
build_placement = build
