"""Refusing replayed receipts: the last sequence numbers of each node's session, partition by partition.

A task's receipts are on one partition, in the order in which its agent numbered them; partitions are read in any order,
after a pause one whole backlog after another. One window for all of them would take the second partition's receipts for
old ones.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from evenflow.core.probing.sequence import Freshness, SequenceWindow

#: Pairs of node and partition that are remembered; who was not heard for longest is forgotten first.
NODES_MAX: Final = 50_000
#: Sessions of a node that are remembered on a partition. What an agent could not deliver comes in its next session.
SESSIONS_PER_NODE_MAX: Final = 4


class Replays:
    """Windows of sequence numbers, in memory. A process that just took over starts with empty ones."""

    def __init__(self, window_count: int) -> None:
        self._count = window_count
        self._nodes: OrderedDict[tuple[str, int], dict[str, SequenceWindow]] = OrderedDict()

    def hear(self, node: str, session: str, partition: int, sequence: int, value: bytes) -> Freshness:
        """Judge a record and remember it when it is new."""
        key = (node, partition)
        windows = self._nodes.get(key)
        if windows is None:
            windows = self._nodes[key] = {}
            if len(self._nodes) > NODES_MAX:
                self._nodes.popitem(last=False)
        else:
            self._nodes.move_to_end(key)
        window = windows.get(session)
        if window is None:
            while len(windows) >= SESSIONS_PER_NODE_MAX:
                del windows[next(iter(windows))]
            window = windows[session] = SequenceWindow(self._count)
        return window.judge(sequence, value)

    @property
    def window_count(self) -> int:
        """How many windows are remembered."""
        return sum(map(len, self._nodes.values()))
