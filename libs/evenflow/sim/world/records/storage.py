"""The log's storage with the fault of the verb `store`: away."""

from __future__ import annotations

from aiokafka.errors import KafkaStorageError

from evenflow.platform.broker.embedded.storage.memory import MemoryStorage
from evenflow.platform.broker.embedded.storage.port import Change


class LogAway(KafkaStorageError):  # type: ignore[misc]  # aiokafka ships no types
    """The log can't write now, as its real storage says it; the same call may succeed later."""

    description = "the simulated log is away"


class FaultyStorage(MemoryStorage):
    """Keeps nothing, like the memory storage, and refuses writes while it is away."""

    def __init__(self) -> None:
        self.away = False

    def write(self, change: Change) -> None:
        """Nothing to do, or LogAway."""
        if self.away:
            raise LogAway
        super().write(change)
