"""The observer: folds the log's records, one after the other, into what everybody could know at that moment.

Only what the product itself would believe counts: a receipt of an attempt that was never issued, of an older attempt,
from another node or of a state already passed changes nothing here either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evenflow.platform.broker.dead_letters import ERROR, ORIGIN
from evenflow.sim.observation import infrastructure, lives, money
from evenflow.sim.observation.entities import (
    DIMENSIONS,
    AttemptView,
    CheckpointView,
    MemberView,
    NodeView,
    QueueView,
    TaskView,
    amounts_of,
)
from evenflow.sim.observation.history import History
from evenflow.sim.observation.record import Seen

Row = dict[str, Any]

DEAD_LETTERS: Final = ".dlq"


@dataclass(slots=True)
class Counted:
    """One countable happening: what, when, and about whom."""

    t_ms: int
    count: str
    task: str = ""
    queue: str = ""
    node: str = ""


class Observation:
    """Everything known so far, with the past of each subject and the rows of the output files."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.tasks: dict[tuple[str, str], TaskView] = {}
        self.nodes: dict[str, NodeView] = {}
        self.queues: dict[str, QueueView] = {}
        self.links: dict[str, History[str]] = {}
        self.copies: dict[str, History[str]] = {}
        self.transfers: dict[str, str] = {}
        #: By task, generation and number: two generations may use the same number.
        self.checkpoints: dict[tuple[str, int, int], CheckpointView] = {}
        self.alerts: dict[tuple[str, str], History[str]] = {}
        self.policy: dict[str, Any] = {}
        self.ledger: list[Row] = []
        self.usage_entries: dict[str, Mapping[str, Any]] = {}
        self.counts: list[Counted] = []
        self.timeline: list[Row] = []
        self.usage: list[Row] = []
        self.record_count = 0
        #: What can't be: invariant and text, drained by whoever judges the invariants.
        self.remarks: list[tuple[str, str]] = []
        #: Ids of records that the world forged: never believed.
        self.forged: dict[str, None] = {}
        self._seen_ids: dict[tuple[str, str], None] = {}
        self._folds: dict[str, Callable[[Observation, Seen], None]] = {
            **lives.FOLDS,
            **infrastructure.FOLDS,
            **money.FOLDS,
        }

    def apply(self, record: Seen) -> None:
        """Take one record in. Records come in the order in which the log got them."""
        self.now_ms = max(self.now_ms, record.t_ms)
        self.record_count += 1
        if record.topic.endswith(DEAD_LETTERS):
            self.count("parked")
            if not record.header(ORIGIN) or not record.header(ERROR):
                self.impossible("INV9", f"a record was parked on {record.topic} without its origin or its reason")
            return
        if record.id and record.id in self.forged:
            return
        fold = self._folds.get(record.type)
        if fold is None or self._is_repeat(record):
            return
        fold(self, record)

    def _is_repeat(self, record: Seen) -> bool:
        """Whether the same fact was on the topic before: published again, or delivered twice."""
        if not record.id:
            return False
        identity = (record.topic, record.id)
        if identity in self._seen_ids:
            return True
        self._seen_ids[identity] = None
        return False

    def impossible(self, invariant: str, text: str) -> None:
        """Remark that something happened which no correct product does."""
        self.remarks.append((invariant, text))

    # -- rows and counts ----------------------------------------------------------------------------------------------
    def count(self, name: str, *, task: str = "", queue: str = "", node: str = "") -> None:
        """Note one happening of a countable kind."""
        self.counts.append(Counted(self.now_ms, name, task, queue, node))

    def change(self, kind: str, subject: str, before: str | None, after: str, **more: Any) -> None:
        """Write a row of the timeline."""
        self.timeline.append(
            {"t": self.now_ms / 1000, "kind": kind, "id": subject, "from": before, "to": after, **more}
        )

    # -- tasks --------------------------------------------------------------------------------------------------------
    def task(self, tenant: str, task_id: str) -> TaskView:
        """The task's view, made at first sight."""
        key = (tenant, task_id)
        if key not in self.tasks:
            self.tasks[key] = TaskView(tenant, task_id)
        return self.tasks[key]

    def begin_anew(self, ended: TaskView) -> TaskView:
        """Another task under the id of an ended one; the past of both is one."""
        fresh = TaskView(ended.tenant, ended.id, history=ended.history)
        self.tasks[ended.tenant, ended.id] = fresh
        return fresh

    def named(self, shown: str) -> TaskView | None:
        """The task of that shown name."""
        tenant, _, task_id = shown.rpartition("/")
        return self.tasks.get((tenant or "default", task_id))

    def note_task(self, task: TaskView) -> None:
        """Keep the task's present as a moment of its past."""
        task.history.note(self.now_ms, task.moment())

    # -- use ----------------------------------------------------------------------------------------------------------
    def queue(self, name: str) -> QueueView:
        """The queue's view, made at first sight."""
        if name not in self.queues:
            self.queues[name] = QueueView(name, None if name == "root" else "root")
        return self.queues[name]

    def queue_and_above(self, name: str) -> list[QueueView]:
        """The queue and every queue above it, nearest first."""
        found: list[QueueView] = []
        current: str | None = name
        while current is not None and len(found) < len(self.queues) + 2:
            view = self.queue(current)
            found.append(view)
            current = view.parent
        return found

    def use_queue(self, name: str, member: MemberView, *, booked: bool) -> None:
        """Book a member on its queue and those above, or off them; asking twice changes nothing."""
        if member.booked == booked:
            return
        member.booked = booked
        for view in self.queue_and_above(name):
            for dimension, amount in amounts_of(member).items():
                view.used[dimension] += amount if booked else -amount
            self.note_queue(view)

    def note_queue(self, view: QueueView) -> None:
        """Keep a queue's use, with a row when it changed."""
        if view.history.note(self.now_ms, tuple(sorted(view.used.items()))):
            self.usage.append(self._usage_row("queue", view.id, view.used))

    def is_lost(self, name: str) -> bool:
        """Whether a node was declared lost by an observer who could see."""
        node = self.nodes.get(name)
        return node is not None and node.lost

    def use_node(self, attempt: AttemptView, sign: int, numbers: tuple[int, ...] | None = None) -> None:
        """Book members on their nodes and devices, or off them."""
        for member in attempt.members.values():
            node = self.nodes.get(member.node)
            if node is None or (numbers is not None and member.number not in numbers):
                continue
            for dimension, amount in amounts_of(member).items():
                node.used[dimension] += sign * amount
            for index, milli in member.devices:
                node.device_used[index] = node.device_used.get(index, 0) + sign * milli
            self.note_node(node)

    def note_node(self, node: NodeView) -> None:
        """Keep a node's present and its devices', with rows for what changed."""
        before = node.history.last
        if node.history.note(self.now_ms, node.moment()):
            now = node.moment()
            if before is None or before.used != now.used:
                self.usage.append(self._usage_row("node", node.id, node.used))
        for index in range(node.device_count):
            past = node.device_history.setdefault(index, History())
            earlier, present = past.last, node.device_moment(index)
            if past.note(self.now_ms, present):
                name = f"{node.id}/{index}"
                shown = infrastructure.shown_device(present)
                if earlier is None or infrastructure.shown_device(earlier) != shown:
                    origin = None if earlier is None else infrastructure.shown_device(earlier)
                    self.change("device", name, origin, shown, node=node.id, site=node.site)
                self.usage.append(self._usage_row("device", name, {"devices": present.used_milli}))

    def _usage_row(self, kind: str, subject: str, used: Mapping[str, int]) -> Row:
        return {
            "t": self.now_ms / 1000,
            "kind": kind,
            "id": subject,
            "used": {name: used[name] for name in DIMENSIONS if name in used},
        }

    def total(self) -> dict[str, int]:
        """Capacity of all nodes that are registered."""
        total = dict.fromkeys(DIMENSIONS, 0)
        for node in self.nodes.values():
            for name in DIMENSIONS:
                total[name] += node.capacity[name]
        return total
