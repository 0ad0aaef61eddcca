"""All tables together: one record in, every table that it concerns changed; and what is worked out across tables."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from evenflow.console.projection.activity import Activity
from evenflow.console.projection.feed import Feed
from evenflow.console.projection.fleet import Amount, Fleet, Holding, capacity_of
from evenflow.console.projection.ledger import Ledger, QueueBook
from evenflow.console.projection.papers import Papers, limits_row
from evenflow.console.projection.task import Task
from evenflow.console.projection.tasks import Tasks
from evenflow.console.settings import ConsoleSettings
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.member import MemberState
from evenflow.core.lifecycle.task import TaskState
from evenflow.events import streams
from evenflow.events.streams import Stream
from evenflow.platform.broker.codec import Received

#: Read one group after the other at the start: documents and decisions before the reports that follow from them.
FOLLOWED: Final[tuple[tuple[Stream, ...], ...]] = (
    (streams.POLICIES, streams.NODES, streams.LINKS, streams.DATASETS),
    (streams.ASSIGNMENTS, streams.BILLING, streams.AUDIT, streams.ROUNDS, streams.ALERTS),
    (streams.TASKS, streams.DISPATCH, streams.RUNS, streams.TRANSFERS, streams.CHECKPOINTS),
)


class Board:
    """The console's whole memory."""

    def __init__(self, settings: ConsoleSettings, epoch: str) -> None:
        self.tasks = Tasks(ended_max=settings.ended_task_count_max, course_max=settings.course_entry_count_max)
        self.fleet = Fleet()
        self.ledger = Ledger(settings.ledger_entry_count_max)
        self.papers = Papers(settings.change_count_max)
        self.activity = Activity(settings.round_count_max)
        self.feed = Feed(epoch, settings.event_count_max)
        self.applied: Counter[str] = Counter()
        self.as_of_ms = 0
        papers, fleet, tasks = self.papers, self.fleet, self.tasks
        self._folds = {
            streams.POLICIES.name: (papers.published,),
            streams.AUDIT.name: (papers.changed,),
            streams.NODES.name: (fleet.node,),
            streams.LINKS.name: (fleet.link,),
            streams.DATASETS.name: (fleet.dataset,),
            streams.DISPATCH.name: (fleet.desired, tasks.desired),
            streams.TASKS.name: (tasks.submission,),
            streams.ASSIGNMENTS.name: (tasks.decision,),
            streams.RUNS.name: (tasks.receipt,),
            streams.TRANSFERS.name: (tasks.transferred,),
            streams.CHECKPOINTS.name: (tasks.checkpointed,),
            streams.BILLING.name: (self.ledger.apply,),
            streams.ROUNDS.name: (self.activity.round,),
            streams.ALERTS.name: (self.activity.alert,),
        }

    def apply(self, received: Received) -> None:
        """Fold one record."""
        for fold in self._folds[received.topic]:
            fold(received)
        self.applied[received.topic] += 1
        self.as_of_ms = max(self.as_of_ms, received.timestamp_ms)
        self.feed.put(received)

    # across tables ----------------------------------------------------------------------------------------------------

    def task_row(self, task: Task) -> dict[str, Any]:
        """One line of a list of tasks."""
        self._mark(task)
        return task.row(cost_micro=self.ledger.cost_micro(task.key))

    def task_status(self, task: Task) -> dict[str, Any]:
        """Everything about a task."""
        self._mark(task)
        shown = task.status(cost_micro=self.ledger.cost_micro(task.key))
        sums, _ = self.ledger.of_task(task.key)
        shown["cost"] = sums.row()
        book = self.ledger.books.get(task.queue)
        shown["currency"] = book.currency if book is not None else ""
        return shown

    def _mark(self, task: Task) -> None:
        """A running task whose node is lost and was not given up is unreachable."""
        attempt = task.attempts.get(task.current)
        task.unreachable = (
            not task.terminal
            and task.phase == "assigned"
            and attempt is not None
            and any(m.place is not None and self.fleet.is_lost(m.place.node) for m in attempt.members.values())
        )

    def queue_rows(self) -> list[dict[str, Any]]:
        """Queues with their limits, what they hold and how many wait."""
        held = {name: Amount() for name in self.papers.queues}
        for holding in self.fleet.holdings():
            if _counts(self.tasks, holding):
                held.setdefault(holding.queue, Amount()).add(holding.place)
        counts: dict[str, Counter[str]] = {}
        for task in self.tasks.by_key.values():
            if not task.end:
                counts.setdefault(task.queue, Counter())[str(task.state()[0])] += 1
        return [self._queue_row(name, held[name], counts.get(name, Counter())) for name in sorted(held)]

    def _queue_row(self, name: str, held: Amount, counts: Counter[str]) -> dict[str, Any]:
        description = self.papers.queues.get(name)
        book = self.ledger.books.get(name, QueueBook(name))
        shown: dict[str, Any] = {
            "queue": name,
            "known": description is not None,
            "held": held.row(),
            "tasks": {str(state): counts.get(state, 0) for state in LIVE},
            "spent_micro": book.balance_micro,
            "currency": book.currency,
        }
        if description is not None:
            shown |= {
                "parent": description.parent,
                "limit": limits_row(description.limit),
                "guaranteed": limits_row(description.guaranteed),
                "weight_milli": description.weight_milli,
                "order": description.order,
                "waiting_limit": description.waiting_limit,
                "budget_micro": description.budget_micro,
            }
        return shown

    def site_rows(self) -> list[dict[str, Any]]:
        """Sites with the sums of their nodes."""
        documents = self.papers.of_kind("site")
        names = sorted({*documents, *(self._site_of(name) for name in self.fleet.names())})
        return [self._site_row(name, documents.get(name)) for name in names]

    def _site_of(self, node: str) -> str:
        status = self.fleet.nodes[node].status
        return str(status.document.get("site", "")) if status is not None else ""

    def _site_row(self, site: str, document: dict[str, Any] | None) -> dict[str, Any]:
        capacity, held, reach = Amount(), Amount(), Counter[str]()
        for name in self.fleet.names():
            node = self.fleet.nodes[name]
            if node.status is None or self._site_of(name) != site:
                continue
            reach[str(node.status.reach)] += 1
            mine = capacity_of(node.description)
            capacity.cpu_milli += mine.cpu_milli
            capacity.memory_bytes += mine.memory_bytes
            capacity.disk_bytes += mine.disk_bytes
            capacity.devices_milli += mine.devices_milli
            for holding in node.held.values():
                held.add(holding.place)
        return {
            "site": site,
            "document": document,
            "nodes": {name: reach[name] for name in ("ok", "suspect", "lost")},
            "capacity": capacity.row(),
            "held": held.row(),
        }


LIVE: Final = (TaskState.QUEUED, TaskState.STARTING, TaskState.RUNNING, TaskState.STOPPING)


def _counts(tasks: Tasks, holding: Holding) -> bool:
    """Whether a place still counts against its queue: not after its attempt was given up or its reclaim arrived."""
    task = tasks.by_key.get(holding.task)
    attempt = task.attempts.get(holding.attempt) if task is not None else None
    if attempt is None:
        return holding.wish is not Wish.RECLAIM
    member = attempt.members.get(holding.member)
    if member is not None and member.state is MemberState.RECLAIMED:
        return False
    return not (attempt.use is not None and str(attempt.use.end) == "lost")
