"""The warden's subscriptions: streams that no other group reads are read here, so that bad records get parked.

Followers pass over what they can't read; parking is the work of a group reader, which remembers how far it is.
"""

from __future__ import annotations

from typing import Final

from evenflow.events import streams
from evenflow.events.streams import Stream
from evenflow.platform.broker.codec import Received
from evenflow.platform.service import EventService

#: Streams without a group reader of their own. Tasks, receipts, checkpoints, telemetry, probes, transfers, requests,
#: assignments and usage have one.
WATCHED: Final[tuple[Stream, ...]] = (
    streams.DISPATCH,
    streams.NODE_REQUESTS,
    streams.NODES,
    streams.LINKS,
    streams.DATASETS,
    streams.BILLING,
    streams.POLICIES,
    streams.ROUNDS,
    streams.ALERTS,
    streams.AUDIT,
)


def subscribe(host: EventService) -> None:
    """Register the warden."""

    async def pass_on(events: list[Received]) -> None:
        """Nothing: readable records are the followers' business."""

    for stream in WATCHED:
        host.inlet.on_batch(stream)(pass_on)
