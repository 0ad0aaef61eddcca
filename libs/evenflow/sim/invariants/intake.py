"""INV13 intake: no input is lost. What can't be read is parked by whoever went past it, what can is answered."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contract import ID_PATTERN
from evenflow.platform.broker.codec import Bad, decode
from evenflow.platform.broker.dead_letters import ORIGIN, SERVICE
from evenflow.sim.observation.model import DEAD_LETTERS, Observation
from evenflow.sim.observation.record import Seen

_ID: Final = re.compile(ID_PATTERN)
#: (topic, partition) to the services that went on, each with the first offset that it has not committed.
Committed = Callable[[str, int], list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _Raw:
    """A record as the log keeps it, for reading it as a service would."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def _nobody(_topic: str, _partition: int) -> list[tuple[str, int]]:
    return []


class Intake:
    """Notes strangers' records and submissions; at the end each must have come to something."""

    name = "INV13"

    def __init__(self) -> None:
        self._bad: list[tuple[str, int, int]] = []
        self._letters: dict[tuple[str, str], None] = {}
        self._submitted: dict[tuple[str, str], int] = {}
        #: Set by the world before the end.
        self.committed: Committed = _nobody

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Note it."""
        if record.topic.endswith(DEAD_LETTERS):
            self._letters[record.header(SERVICE), record.header(ORIGIN)] = None
        elif record.type == EventType.TASK_SUBMITTED:
            name = (str(record.body.get("tenant", "default")), str(record.body.get("id")))
            if record.key_text == "/".join(name) and all(_ID.fullmatch(part) for part in name):
                self._submitted.setdefault(name, model.now_ms)
        elif not record.id and record.topic in streams.BY_NAME and _is_bad(record):
            self._bad.append((record.topic, record.partition, record.offset))
        yield from ()

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Every record that can't be read and was committed is parked; every submission is a task."""
        for topic, partition, offset in self._bad:
            origin = f"{topic}/{partition}/{offset}"
            for service, next_offset in self.committed(topic, partition):
                if offset < next_offset and (service, origin) not in self._letters:
                    yield f"{service} went past {origin}, which can't be read, and did not park it"
        if not settled:
            return
        for name, at_ms in self._submitted.items():
            task = model.tasks.get(name)
            if task is None or task.state is None:
                yield f"{'/'.join(name)} was submitted at {at_ms / 1000:g} s and nothing was ever said of it"


def _is_bad(record: Seen) -> bool:
    headers = tuple((name, value or b"") for name, value in record.headers)
    raw = _Raw(record.topic, record.partition, record.offset, record.t_ms, record.key, record.value, headers)
    return isinstance(decode(raw, streams.BY_NAME[record.topic]), Bad)


#: Groups whose name is not `evenflow.<service>.<topic>`: name to service and topics.
OTHER_GROUPS: Final = {
    "placement.default-lag": (
        "placement",
        (streams.TASKS.name, streams.RUNS.name, streams.CHECKPOINTS.name),
    ),
    "evenflow.billing.ledger": ("billing", (streams.USAGE.name,)),
}


def reader_of(group: str) -> tuple[str, tuple[str, ...]]:
    """The service that a consumer group belongs to, and the topics that it reads; nothing for other groups."""
    if group in OTHER_GROUPS:
        return OTHER_GROUPS[group]
    service, _, topic = group.removeprefix("evenflow.").partition(".")
    return (service, (topic,)) if topic in streams.BY_NAME else ("", ())
