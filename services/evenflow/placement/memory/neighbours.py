"""Who must not share a node with whom: `where.apart_from` (either way) and `where.not_with` (labels)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evenflow.core.demand.task import Task
from evenflow.placement.memory.rows import TaskRow

Label = tuple[str, str]


class Neighbours:
    """Answers for one round. The engine sees only nodes, so tasks that must not meet are never asked for together."""

    def __init__(self, live: NeighbourIndex, tasks: Mapping[str, TaskRow]) -> None:
        self._live = live
        self._tasks = tasks
        self._names: dict[str, None] = {}
        self._avoided_names: dict[str, None] = {}
        self._labels: dict[Label, None] = {}
        self._avoided_labels: dict[Label, None] = {}

    def conflicts(self, task: Task) -> bool:
        """Whether a task taken before must not meet this one."""
        tenant = task.tenant
        return (
            task.key in self._avoided_names
            or any(f"{tenant}/{name}" in self._names for name in task.where.apart_from)
            or any(label in self._avoided_labels for label in task.labels)
            or any(label in self._labels for label in task.where.not_with)
        )

    def take(self, task: Task) -> None:
        """Note a task that is asked for in this round."""
        self._names[task.key] = None
        for name in task.where.apart_from:
            self._avoided_names[f"{task.tenant}/{name}"] = None
        for label in task.labels:
            self._labels[label] = None
        for label in task.where.not_with:
            self._avoided_labels[label] = None

    def apart_nodes(self, task: Task) -> tuple[str, ...]:
        """Nodes where somebody is whom this task must not meet, in order of name."""
        tasks = self._tasks
        nodes: dict[str, None] = {}
        for key in self._live.must_not_meet(task):
            row = tasks.get(key)
            if row is not None:
                nodes.update((member.node, None) for _, _, member in row.holding())
        return tuple(sorted(nodes))


class NeighbourIndex:
    """Who of the live tasks is called, labelled and asking to be apart in which way."""

    def __init__(self) -> None:
        self._live: dict[str, None] = {}
        self._apart_from: dict[str, dict[str, None]] = {}
        self._labelled: dict[Label, dict[str, None]] = {}
        self._against: dict[Label, dict[str, None]] = {}

    def move(self, key: str, before: TaskRow | None, after: TaskRow | None) -> None:
        """Take a task in or out as its attempt begins or ends."""
        was = before.task if before is not None and before.current is not None else None
        now = after.task if after is not None and after.current is not None else None
        if (was is None) == (now is None):
            return
        if now is not None:
            self._live[key] = None
            for table, name in self._entries(now):
                table.setdefault(name, {})[key] = None
        elif was is not None:
            del self._live[key]
            for table, name in self._entries(was):
                keys = table.get(name, {})
                keys.pop(key, None)
                if not keys:
                    table.pop(name, None)

    def _entries(self, task: Task) -> Iterator[tuple[dict[Any, dict[str, None]], Any]]:
        for name in task.where.apart_from:
            yield self._apart_from, f"{task.tenant}/{name}"
        for label in task.labels:
            yield self._labelled, label
        for label in task.where.not_with:
            yield self._against, label

    def must_not_meet(self, task: Task) -> list[str]:
        """Keys of live tasks that may not share a node with this one."""
        where = task.where
        if not (where.apart_from or where.not_with or self._apart_from or self._against):
            return []
        keys = dict.fromkeys(key for name in where.apart_from if (key := f"{task.tenant}/{name}") in self._live)
        keys.update(self._apart_from.get(task.key, {}))
        for label in where.not_with:
            keys.update(self._labelled.get(label, {}))
        for label in task.labels:
            keys.update(self._against.get(label, {}))
        keys.pop(task.key, None)
        return list(keys)
