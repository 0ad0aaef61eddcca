"""The log's storage with the fault of the verb `store`: away."""

from __future__ import annotations

from aiokafka.errors import KafkaError

from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.storage.port import Change


class LogAway(KafkaError):  # type: ignore[misc]  # aiokafka ships no types
    """The log does not answer; the same call may succeed later."""

    errno = -1
    message = "LOG_AWAY"
    description = "the simulated log is away"
    retriable = True


class FaultyStorage(MemoryStorage):
    """Keeps nothing, like the memory storage, and refuses writes while it is away."""

    def __init__(self) -> None:
        self.away = False

    def write(self, change: Change) -> None:
        """Nothing to do, or LogAway."""
        if self.away:
            raise LogAway
        super().write(change)
