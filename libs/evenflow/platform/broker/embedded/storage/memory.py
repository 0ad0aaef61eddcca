"""Storage that keeps nothing: the log's own lists are the only copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenflow.platform.broker.embedded.storage.port import Change, Loaded

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.records import LogRecord


class MemoryStorage:
    """A log that ends with its process, and grows until `retention` cuts it."""

    cache_bytes: int | None = None

    def load(self) -> Loaded:
        """Nothing: the log starts empty."""
        return Loaded()

    def write(self, change: Change) -> None:
        """Nothing to do."""

    def read(self, partition_id: int, topic: str, number: int, start: int, end: int, limit: int) -> list[LogRecord]:
        """Never any record beyond the log's lists."""
        return []

    def close(self) -> None:
        """Nothing to let go of."""
