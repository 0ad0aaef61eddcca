"""Inventory's composition root."""

from __future__ import annotations

from collections import Counter

from evenflow.core.errors import Unavailable
from evenflow.core.lifecycle.node import Reach
from evenflow.events import streams
from evenflow.inventory.catalogue import Catalogue
from evenflow.inventory.handlers import subscribe
from evenflow.inventory.service import Inventory
from evenflow.inventory.settings import InventorySettings
from evenflow.inventory.stores import Views
from evenflow.platform.observability.signals import NODES
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import EventService, Step


def build(runtime: Runtime, settings: InventorySettings) -> EventService:
    """Put inventory together."""
    host = EventService(runtime)
    inventory = Inventory(runtime, settings)
    catalogue = Catalogue(inventory.registry)
    views = Views(runtime, inventory.registry, inventory.load)
    host.follow([streams.NODES, streams.DATASETS], inventory.restore)
    host.follow([streams.POLICIES], inventory.silence.apply)
    host.follow([streams.ALERTS], inventory.restore_alert)

    host.restore = inventory.begin
    host.work_alone(settings.session_timeout_ms)
    subscribe(host, inventory, catalogue)

    async def judge() -> None:
        await host.outlet.publish(*inventory.judge_silence())

    async def beacon() -> None:
        await host.outlet.publish(*inventory.beacon())

    async def flush() -> None:
        try:
            await views.flush_load()
            await views.flush_documents()
        except Unavailable as error:
            runtime.log.warning("view not written", problem=str(error))

    async def measure() -> None:
        reached = Counter(str(entry.status.reach) for entry in inventory.registry.nodes.values())
        for reach in Reach:
            runtime.metrics.of(NODES).record(reached[reach], reach=reach)

    host.measures.append(measure)
    host.steps = [
        Step("judge-silence", settings.judge_period_ms, judge),
        Step("beacon", settings.heartbeat_period_ms, beacon),
        Step("flush", settings.flush_period_ms, flush),
    ]
    return host
