"""What placement believes: the rows of the state topic and everything that follows from them.

`apply` is the one way in, for restore and for the live process alike, so memory and log can't differ. Indexes, holdings
and due times are derived from rows; nothing else is remembered.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import deque
from collections.abc import Mapping
from typing import Final

from evenflow.core.lifecycle.task import TaskState
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.neighbours import NeighbourIndex
from evenflow.placement.memory.rows import AlertRow, NodeRow, PoolRow, Row, TaskRow, row_document, row_key
from evenflow.placement.memory.waiting import Waiting

#: An ended task that still holds capacity is looked at again after this long.
HELD_AGAIN_MS: Final = 60_000
#: Void entries of the order of due times that are left in it whatever its length.
DUE_SLACK: Final = 64


def due_of(row: TaskRow) -> int:
    """When time alone may change a task's life: wall milliseconds, 0 = never."""
    if row.task is None:
        return 0
    times: list[int] = []
    deadline_ms = row.task.deadline_ms
    current = row.current
    if deadline_ms is not None and (current is None or current.cause is None):
        times.append(row.submitted_ms + deadline_ms)
    if current is not None:
        if current.cause is None and row.state is TaskState.STARTING and current.ready_due_ms:
            times.append(current.ready_due_ms)
        if current.stop_due_ms and "task.stuck" not in row.alerts:
            times.append(current.stop_due_ms)
    return min(times, default=0)


class Model:
    """The rows and their indexes. Only `apply` changes it."""

    def __init__(self, pool: str, capacity: Capacity) -> None:
        self.pool = PoolRow(pool)
        self.tasks: dict[str, TaskRow] = {}
        self.nodes: dict[str, NodeRow] = {}
        self.alerts: dict[str, AlertRow] = {}
        self.waiting = Waiting()
        self.on_node: dict[str, dict[str, None]] = {}
        self.neighbours = NeighbourIndex()
        self.live_count = 0
        self._capacity = capacity
        self._due: dict[str, int] = {}
        self._due_order: list[tuple[int, str]] = []
        self._ended: deque[tuple[int, str]] = deque()
        self._ended_count = 0

    def apply(self, key: str, row: Row | None, now_ms: int = 0) -> None:
        """Take one row in; None forgets its key. `now_ms` says who still has to pause: 0 while restoring."""
        kind, _, name = key.partition("/")
        if kind == "task":
            self._apply_task(name, row if isinstance(row, TaskRow) else None, now_ms)
        elif kind == "pool" and isinstance(row, PoolRow):
            self.pool = row
        elif kind == "node":
            _put(self.nodes, name, row if isinstance(row, NodeRow) else None)
            self.waiting.bump()
        elif kind == "alert":
            _put(self.alerts, name, row if isinstance(row, AlertRow) else None)

    def _apply_task(self, key: str, row: TaskRow | None, now_ms: int) -> None:
        before = self.tasks.get(key)
        self._move_holdings(key, before, row)
        self._capacity.run(key, row)
        self.neighbours.move(key, before, row)
        _put(self.tasks, key, row)
        if row is not None and row.state is TaskState.QUEUED:
            self.waiting.add(row, now_ms)
        elif key in self.waiting:
            self.waiting.remove(key)
        self._set_due(key, due_of(row) if row is not None else 0)
        self._note_end(key, before, row)

    def _move_holdings(self, key: str, before: TaskRow | None, after: TaskRow | None) -> None:
        old = before.holding() if before is not None else []
        new = after.holding() if after is not None else []
        if not old and not new:
            return
        if self._capacity.move(after.queue if after is not None else "", key, old, new):
            self.waiting.bump()
        for node in {member.node: None for _, _, member in old}:
            if not any(member.node == node for _, _, member in new):
                keys = self.on_node[node]
                del keys[key]
                if not keys:
                    del self.on_node[node]
        for _, _, member in new:
            self.on_node.setdefault(member.node, {})[key] = None
        self.live_count += bool(new) - bool(old)

    # --- time ---------------------------------------------------------------------------------------------------------

    def _set_due(self, key: str, due_ms: int) -> None:
        if not due_ms:
            self._due.pop(key, None)
        elif self._due.get(key) != due_ms:
            self._due[key] = due_ms
            heapq.heappush(self._due_order, (due_ms, key))
        if len(self._due_order) > 2 * len(self._due) + DUE_SLACK:
            # Most times are an attempt's limits, hours away when it ends: what is void does not wait for its moment.
            self._due_order = [(at_ms, waiting) for waiting, at_ms in self._due.items()]
            heapq.heapify(self._due_order)

    def due(self, now_ms: int) -> list[str]:
        """Keys of tasks whose time has come, each once: the round that takes them writes what follows."""
        out: list[str] = []
        order = self._due_order
        while order and order[0][0] <= now_ms:
            due_ms, key = heapq.heappop(order)
            if self._due.get(key) == due_ms:
                del self._due[key]
                out.append(key)
        return out

    @property
    def next_due_ms(self) -> int | None:
        """When the next task becomes due."""
        order = self._due_order
        while order and self._due.get(order[0][1]) != order[0][0]:
            heapq.heappop(order)
        return order[0][0] if order else None

    def _note_end(self, key: str, before: TaskRow | None, after: TaskRow | None) -> None:
        was = before is not None and before.terminal
        if after is not None and after.terminal:
            if not was:
                self._ended_count += 1
                self._ended.append((after.ended_ms, key))
        elif was:
            self._ended_count -= 1

    def forgettable(self, ended_before_ms: int, count_max: int, limit: int) -> list[str]:
        """Keys of ended tasks to forget: older than a moment, or more than `count_max`; at most `limit`.

        One that still holds capacity is put back at the end of the line.
        """
        out: list[str] = []
        for _ in range(min(len(self._ended), limit)):
            look_ms, key = self._ended[0]
            if look_ms > ended_before_ms and self._ended_count - len(out) <= count_max:
                break
            self._ended.popleft()
            row = self.tasks.get(key)
            if row is None or not row.terminal or row.ended_ms > look_ms:
                continue
            if row.holds:
                self._ended.append((ended_before_ms + HELD_AGAIN_MS, key))
            else:
                out.append(key)
        return out

    def oldest_end_ms(self) -> int | None:
        """When the first of the remembered ends happened."""
        return self._ended[0][0] if self._ended else None

    def forgotten_ms(self, count_max: int) -> int | None:
        """Up to when tasks ended that may have been forgotten for their number; None while there is room for more."""
        return self.oldest_end_ms() if self._ended_count >= count_max else None

    # --- views --------------------------------------------------------------------------------------------------------

    def restored(self, now_ms: int) -> None:
        """Sort waiting tasks by the present time, and ends by age, after a restore."""
        self._ended = deque(sorted(self._ended))
        self.waiting.wake(now_ms)

    def rows(self) -> list[tuple[str, Row]]:
        """Every row with its key, in order of key."""
        every: list[Row] = [*self.tasks.values(), *self.nodes.values(), *self.alerts.values(), self.pool]
        return sorted(((row_key(row), row) for row in every), key=lambda pair: pair[0])

    def row(self, key: str) -> Row | None:
        """One row by its key on the state topic."""
        kind, _, name = key.partition("/")
        if kind == "pool":
            return self.pool
        tables: dict[str, Mapping[str, Row]] = {"task": self.tasks, "node": self.nodes, "alert": self.alerts}
        return tables[kind].get(name)

    def digest(self) -> str:
        """A hash of everything remembered, so that two models can be compared."""
        digest = hashlib.sha256()
        for key, row in self.rows():
            extra = row.specification if isinstance(row, TaskRow) else b""
            document = json.dumps(row_document(row), sort_keys=True, separators=(",", ":"))
            digest.update(f"{key}\n{document}\n".encode() + extra)
        return digest.hexdigest()


def _put(table: dict[str, TaskRow] | dict[str, NodeRow] | dict[str, AlertRow], key: str, row: Row | None) -> None:
    if row is None:
        table.pop(key, None)
    else:
        table[key] = row  # type: ignore[assignment]  # the caller pairs table and row
