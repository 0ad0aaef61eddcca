"""Checkpoint's composition root."""

from __future__ import annotations

from evenflow.checkpoint.handlers import subscribe
from evenflow.checkpoint.service import Checkpoints
from evenflow.checkpoint.settings import CheckpointSettings
from evenflow.checkpoint.stores import ObjectCheckpoints
from evenflow.events import streams
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import EventService, Step


def build(runtime: Runtime, settings: CheckpointSettings) -> EventService:
    """Put checkpoint together."""
    host = EventService(runtime)
    checkpoints = Checkpoints(runtime, settings, ObjectCheckpoints(runtime))
    host.follow([streams.ASSIGNMENTS, streams.CHECKPOINTS], checkpoints.projection.apply)
    subscribe(host, checkpoints)

    async def prune() -> None:
        await host.outlet.publish(*await checkpoints.prune())
        await checkpoints.sweep()

    host.steps = [Step("prune", settings.prune_period_ms, prune)]
    return host
