"""What link-probe subscribes to: samples in, estimates out."""

from __future__ import annotations

from evenflow.events import streams
from evenflow.events.contracts.agent import LinkSampled
from evenflow.link_probe.service import LinkProbe
from evenflow.platform.broker.codec import Received
from evenflow.platform.service import EventService


def subscribe(host: EventService, probe: LinkProbe) -> None:
    """Register every handler."""

    @host.inlet.on(streams.PROBES)
    async def on_probe(received: Received) -> None:
        if isinstance(received.body, LinkSampled):
            await host.outlet.publish(*probe.take(received.body, received))
