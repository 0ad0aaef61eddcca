"""What others may hang on the log: delivery, interception, archive.

The simulation draws when a record reaches a group, and what happens between a sender and the log; the platform copies
records to the object store before they expire. Each is a small port with a default that does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from aiokafka import TopicPartition

    from evenflow.platform.broker.embedded.records import LogRecord
    from evenflow.platform.broker.ports import Record

Interceptor = Callable[[list["LogRecord"]], list["LogRecord"]]
"""Records on their way into the log, in; records to append, out.

A repetition must be `record.detached()`, or the log recognises it and appends nothing. A record left out is
acknowledged with offset -1; whoever holds it appends `record.detached()` later.
"""


class Delivery(Protocol):
    """Says which appended records have reached a group."""

    def reached(
        self, group_id: str | None, partition: TopicPartition, position: int, end: int, wake: Callable[[], None]
    ) -> int:
        """The offset up to which records may be read now, from `position` to `end`.

        Below `end` the port must call `wake` once more has arrived; it is called again then. `end` is the log's own
        limit (the last stable offset of a read_committed consumer).
        """


class Archive(Protocol):
    """Copies records somewhere safe before the log drops them."""

    def keeps(self, topic: str) -> bool:
        """Whether this topic is archived."""

    async def archive(self, topic: str, partition: int, records: Sequence[Record]) -> None:
        """Store the records, ascending and without gaps but for markers and aborted ones; raise when they are not safe.

        The same range may come again after a crash; it then has the same bytes.
        """


@dataclass(slots=True)
class Hooks:
    """The hooks of one log; all may be changed while it runs.

    With `patient_polls` a poll waits for data whatever its time-out says, so that idle consumers cost a simulation no
    timers; it still returns, empty, when the position moved over records nobody may see.
    """

    delivery: Delivery | None = None
    interceptor: Interceptor | None = None
    archive: Archive | None = None
    patient_polls: bool = False
