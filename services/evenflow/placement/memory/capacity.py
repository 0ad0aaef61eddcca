"""What the engine decides on, kept in step with rows and tables: fleet, queues, links, datasets, what runs."""

from __future__ import annotations

from evenflow.core.fleet.columns import Fleet
from evenflow.core.fleet.datasets import DatasetsView
from evenflow.core.fleet.holder import Holder
from evenflow.core.fleet.links import LinksView
from evenflow.core.fleet.snapshot import RunningView, Snapshot
from evenflow.core.placement.plan import Place
from evenflow.core.queueing.quota import Queues, amount_of
from evenflow.placement.memory.rows import MemberRow, NodeRow, TaskRow
from evenflow.placement.memory.tables import Tables

Holding = list[tuple[int, bool, MemberRow]]


class Capacity:
    """The engine's books. Rows hold and give back; tables say what nodes, queues and links there are."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.queues = Queues()
        self._running: dict[str, RunningView] = {}
        self._running_attempt: dict[str, int] = {}
        self._links = LinksView()
        self._datasets = DatasetsView()
        self._known_queues: dict[str, None] = {}

    # --- rows ---------------------------------------------------------------------------------------------------------

    def move(self, queue: str, key: str, old: Holding, new: Holding) -> bool:
        """Turn what a task held into what it holds now. Returns whether anything came back."""
        if not old:
            for number, counted, one in new:
                self._hold(queue, key, number, one, counted=counted)
            return False
        before = {(number, member.member): counted for number, counted, member in old}
        after = {(number, member.member): counted for number, counted, member in new}
        came_back = False
        for (number, member), counted in before.items():
            kept = after.get((number, member))
            holder = Holder(key, number, member)
            if kept is None:
                self.fleet.free(holder)
                came_back = True
            if counted and not kept:
                self.queues.free(holder)
                came_back = True
        for number, counted, one in new:
            if (number, one.member) not in before:
                self._hold(queue, key, number, one, counted=counted)
        return came_back

    def _hold(self, queue: str, key: str, attempt: int, member: MemberRow, *, counted: bool) -> None:
        place, holder = member.place(), Holder(key, attempt, member.member)
        self.fleet.hold(holder, place)
        if counted:
            self.queues.hold(queue, holder, amount_of((place,)))

    def run(self, key: str, row: TaskRow | None) -> None:
        """Note until when a task is expected to hold its places."""
        attempt = row.current if row is not None else None
        if row is None or attempt is None:
            if self._running.pop(key, None) is not None:
                del self._running_attempt[key]
            return
        known = self._running.get(key)
        declared_ms = row.task.declared_ms if row.task is not None else None
        end_ms = None if declared_ms is None else (attempt.started_ms or attempt.assigned_ms) + declared_ms
        if known is not None and self._running_attempt[key] == attempt.number and known.expected_end_ms == end_ms:
            return
        places = tuple([self._place(key, attempt.number, member) for member in attempt.members])
        self._running[key] = RunningView(key, places, end_ms)
        self._running_attempt[key] = attempt.number

    def _place(self, key: str, attempt: int, member: MemberRow) -> Place:
        return self.fleet.place_of(Holder(key, attempt, member.member)) or member.place()

    # --- tables -------------------------------------------------------------------------------------------------------

    def renew_node(self, tables: Tables, node: str, now_ms: int, row: NodeRow, *, limit: int, probe_ms: int) -> None:
        """Take a node's newest state. One closed for failed starts is tried again `probe_ms` after the last of them."""
        until_ms = row.closed_ms + probe_ms
        closed = row.start_failure_count >= limit and row.closed_ms > 0 and now_ms < until_ms
        if closed:
            tables.look_again(node, until_ms)
        view = tables.view_of(node, now_ms, closed=closed)
        if view is None:
            self.fleet.remove(node)
        else:
            self.fleet.upsert(view)

    def renew_queues(self, tables: Tables) -> None:
        """Take the queues as they are described now."""
        for name in self._known_queues:
            if name not in tables.queues:
                self.queues.remove(name)
        self._known_queues = dict.fromkeys(tables.queues)
        for queue in tables.queues.values():
            self.queues.set(queue)

    def renew_network(self, tables: Tables) -> None:
        """Take links and datasets as they are known now."""
        self._links = LinksView(tables.links.values())
        self._datasets = DatasetsView(tables.datasets.values())

    def snapshot(self, tables: Tables) -> Snapshot:
        """The pool at this moment, for one round: who runs is looked up only by those who ask."""
        return Snapshot(
            fleet=self.fleet.snapshot(),
            links=self._links,
            datasets=self._datasets,
            running=self._running.values(),
            sites=tuple(tables.sites.values()),
        )
