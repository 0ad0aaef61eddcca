"""What checkpoint subscribes to: receipts about saving, resuming and being gone."""

from __future__ import annotations

from evenflow.checkpoint.service import Checkpoints
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptCheckpointed, AttemptReclaimed, AttemptStarted
from evenflow.platform.broker.codec import Received
from evenflow.platform.service import EventService


def subscribe(host: EventService, checkpoints: Checkpoints) -> None:
    """Register every handler."""

    @host.inlet.on(streams.RUNS)
    async def on_receipt(received: Received) -> None:
        body = received.body
        if isinstance(body, AttemptCheckpointed):
            await host.outlet.publish(*await checkpoints.verify(body, received))
        elif isinstance(body, AttemptStarted) and body.damaged:
            await host.outlet.publish(*checkpoints.started(body, received))
        elif isinstance(body, AttemptReclaimed):
            checkpoints.reclaimed(body)
