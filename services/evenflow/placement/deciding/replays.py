"""Refusing replayed receipts: the last sequence numbers of each node's session, partition by partition.

A task's receipts are on one partition, in the order in which its agent numbered them; partitions are read in any order,
after a pause one whole backlog after another. One window for all of them would take the second partition's receipts for
old ones.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from evenflow.core.probing.sequence import Freshness, SequenceWindow

WINDOWS_MAX: Final = 50_000


class Replays:
    """Windows of sequence numbers, in memory. A process that just took over starts with empty ones."""

    def __init__(self, window_count: int) -> None:
        self._count = window_count
        self._windows: OrderedDict[tuple[str, str, int], SequenceWindow] = OrderedDict()

    def hear(self, node: str, session: str, partition: int, sequence: int, value: bytes) -> Freshness:
        """Judge a record and remember it when it is new."""
        key = (node, session, partition)
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = SequenceWindow(self._count)
            if len(self._windows) > WINDOWS_MAX:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        return window.judge(sequence, value)
