"""What inventory subscribes to: decode, call, publish what comes back."""

from __future__ import annotations

from evenflow.core.lifecycle.node import Administration
from evenflow.events import streams
from evenflow.events.contracts.agent import TransferFailed, TransferFinished
from evenflow.events.contracts.console import (
    DatasetAddRequested,
    DatasetDropRequested,
    NodeCordonRequested,
    NodeDrainRequested,
    NodeRevokeRequested,
    NodeUncordonRequested,
)
from evenflow.inventory.catalogue import Catalogue
from evenflow.inventory.service import Inventory
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.service import EventService


def subscribe(host: EventService, inventory: Inventory, catalogue: Catalogue) -> None:
    """Register every handler."""

    @host.inlet.on_batch(streams.TELEMETRY)
    async def on_telemetry(events: list[Received]) -> None:
        await host.outlet.publish(*inventory.hear(events))

    @host.inlet.on(streams.REQUESTS)
    async def on_request(received: Received) -> None:
        await host.outlet.publish(*_requested(received, inventory, catalogue))

    @host.inlet.on(streams.ALERTS)
    async def on_alert(received: Received) -> None:
        await host.outlet.publish(*inventory.heed(received))

    @host.inlet.on(streams.TRANSFERS)
    async def on_transfer(received: Received) -> None:
        body = received.body
        if isinstance(body, TransferFinished):
            await host.outlet.publish(*catalogue.finished(body, received))
        elif isinstance(body, TransferFailed):
            await host.outlet.publish(*catalogue.failed(body, received))


def _requested(received: Received, inventory: Inventory, catalogue: Catalogue) -> list[Fact]:
    match received.body:
        case NodeCordonRequested(node=node, reason=reason):
            return inventory.administer(node, received, administration=Administration.CORDONED, note=reason)
        case NodeUncordonRequested(node=node, reason=reason):
            return inventory.administer(
                node, received, administration=Administration.OPEN, note=reason, drain_deadline_ms=None
            )
        case NodeDrainRequested(node=node, reason=reason, deadline_ms=deadline_ms):
            return inventory.administer(
                node,
                received,
                administration=Administration.DRAINING,
                note=reason,
                drain_deadline_ms=inventory.runtime.clock.now_ms() + deadline_ms,
            )
        case NodeRevokeRequested(node=node, reason=reason):
            return inventory.administer(node, received, revoked=True, note=reason)
        case DatasetAddRequested() as body:
            return catalogue.add(body, received)
        case DatasetDropRequested() as body:
            return catalogue.drop(body, received)
        case _:
            return []
