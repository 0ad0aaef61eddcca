"""A service's wish to be given a stream's events, whoever hands them over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from evenflow.events.streams import Stream
from evenflow.platform.broker.codec import Bad, Received
from evenflow.platform.broker.ports import Record

BatchHandler = Callable[[list[Received]], Awaitable[None]]
#: What does the reading, retrying and parking around a handler.
Handle = Callable[[Sequence[Received | Bad], Sequence[Record], BatchHandler], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Subscription:
    """`max_records` 1 = one event at a time."""

    stream: Stream
    handler: BatchHandler
    max_records: int = 1

    @property
    def batch(self) -> bool:
        """Whether the handler takes several events at once."""
        return self.max_records > 1


def group_of(service: str, stream: Stream) -> str:
    """The consumer group of a service on a stream."""
    return f"evenflow.{service}.{stream.name}"
