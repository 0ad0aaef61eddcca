"""What metering subscribes to; what comes back is published as usage."""

from __future__ import annotations

from evenflow.billing.metering import meter
from evenflow.events import streams
from evenflow.platform.broker.codec import Received
from evenflow.platform.service import EventService


def subscribe(host: EventService) -> None:
    """Register every handler."""

    async def on_events(events: list[Received]) -> None:
        await host.outlet.publish(*(fact for received in events for fact in meter(received)))

    for stream in (streams.ASSIGNMENTS, streams.RUNS, streams.TRANSFERS):
        host.inlet.on_batch(stream)(on_events)
