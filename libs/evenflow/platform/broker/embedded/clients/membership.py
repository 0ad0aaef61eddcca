"""A consumer as a member of its group: what the coordinator asks of it, and its listener.

The coordinator calls `begin_rejoin` and `take_assignment` in the consumer's own context. Listener callbacks run one
after another, before records of the new assignment are handed out; what they raise is logged and swallowed, as aiokafka
does. A member that hands nothing out for the poll interval leaves and joins again at its next poll.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from aiokafka import ConsumerRebalanceListener, TopicPartition

from evenflow.platform.broker.embedded.clients.offsets import OffsetControl

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.clients.positions import OrderedKeys, Positions
    from evenflow.platform.broker.embedded.log import EmbeddedLog

_log = logging.getLogger(__name__)


class Membership(OffsetControl):
    """The part of a consumer that belongs to a group. `member_id` is new with each join."""

    def __init__(
        self,
        log: EmbeddedLog,
        group_id: str | None,
        positions: Positions,
        *,
        client_id: str,
        strategy: str,
        session_timeout_ms: int,
        max_poll_interval_ms: int,
        auto_commit_ms: int | None,
    ) -> None:
        super().__init__(log, group_id, positions)
        self.client_id = client_id
        self.strategy = strategy
        self.session_timeout_s = session_timeout_ms / 1000
        self.member_id = ""
        self.generation = -1
        self.context = contextvars.copy_context()
        self._max_poll_s = max_poll_interval_ms / 1000
        self._auto_commit_s = auto_commit_ms / 1000 if auto_commit_ms is not None and group_id is not None else None
        self._auto_commit: asyncio.TimerHandle | None = None
        self._listener: ConsumerRebalanceListener | None = None
        self._by_hand: list[TopicPartition] | None = None
        self._may_fetch = False
        self._must_join = False
        self._joined: asyncio.Future[None] | None = None
        self._callbacks: list[asyncio.Task[None]] = []
        self._poll_deadline = 0.0
        self._poll_timer: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def wants(self, topic: str) -> bool:
        """Whether its subscription covers a topic."""
        return False

    def _join(self) -> None:
        self._must_join = False
        self.member_id = self.log.groups.new_member_id(self.client_id)
        self.generation = -1
        self.log.groups.join(self)

    def begin_rejoin(self) -> None:
        """Give up the partitions: nothing is handed out until the next assignment; the listener may still commit."""
        if self._closed or not self.log.groups.is_member(self):
            return
        self._may_fetch = False
        if self._listener is None and self._auto_commit_s is None:
            self.log.groups.rejoined(self)
            return
        self._call_back(self._revoke_and_rejoin)

    def _call_back(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run listener work in this process, one after another."""
        before = [task for task in self._callbacks if not task.done()]
        self._callbacks = [*before, self.log.loop.create_task(_after(before, work))]

    async def _revoke_and_rejoin(self) -> None:
        await self._revoke()
        self.log.groups.rejoined(self)

    async def _revoke(self) -> None:
        if self._auto_commit_s is not None:
            await self._commit_quietly()
        if self._listener is not None:
            await _call(self._listener.on_partitions_revoked, self._positions.keys())

    def take_assignment(self, generation: int, keys: list[TopicPartition]) -> None:
        """Read these partitions from their committed offsets; an answer that comes too late is ignored."""
        groups = self.log.groups
        if self._closed or not groups.is_member(self) or generation != groups.generation(self.group_id or ""):
            return
        self.generation = generation
        self._hold((key, self.log.committed(self.group_id or "", key)) for key in keys)
        if self._listener is None:
            self._assigned()
            return
        self._call_back(self._announce)

    async def _announce(self) -> None:
        generation = self.generation
        if self._listener is not None:
            await _call(self._listener.on_partitions_assigned, self._positions.keys())
        if generation == self.generation and self.log.groups.is_settled(self):
            self._assigned()

    def _assigned(self) -> None:
        self._may_fetch = True
        self._polled()
        if self._joined is not None and not self._joined.done():
            self._joined.set_result(None)
        self.wake()

    def rejoin(self) -> None:
        """The member learned that it was put out: what it held is lost, and it joins anew."""
        if not self._closed and self._by_hand is None and not self.log.groups.is_member(self):
            self._let_go()
            self._join()

    def _leave_for_silence(self) -> None:
        """No poll for too long: leave, tell the listener, and join again at the next poll."""
        self._poll_timer = None
        now = self.log.loop.time()
        if self._closed or self._waiting or not self.log.groups.is_member(self):
            return
        if now < self._poll_deadline:
            self._poll_timer = self.log.loop.call_at(self._poll_deadline, self._leave_for_silence)
            return
        self.log.groups.leave(self)
        self._may_fetch = False
        self._must_join = True
        self._call_back(self._revoke_and_let_go)

    async def _revoke_and_let_go(self) -> None:
        await self._revoke()
        if self._must_join:
            self._let_go()

    def _polled(self) -> None:
        """A poll handed something out: the next one must come within the poll interval."""
        if self.group_id is None or self._by_hand is not None:
            return
        self._poll_deadline = self.log.loop.time() + self._max_poll_s
        if self._poll_timer is None:
            self._poll_timer = self.log.loop.call_at(self._poll_deadline, self._leave_for_silence, context=self.context)

    def _take_by_hand(self) -> None:
        keys = self._by_hand or []
        group = self.group_id
        self._hold((key, self.log.committed(group, key) if group is not None else None) for key in keys)
        self._may_fetch = True
        self.wake()

    def _hold(self, places: Iterable[tuple[TopicPartition, int | None]]) -> None:
        self._let_go()
        self._positions.assign(places)
        for partition in self._positions.partitions():
            partition.readers[self] = None

    def _let_go(self) -> None:
        for partition in self._positions.partitions():
            partition.readers.pop(self, None)
        self._positions.assign(())

    # ---- commits

    def _must_not_commit(self) -> bool:
        """Whether the group went on without this member; a member that was put out joins anew."""
        groups, group = self.log.groups, self.group_id or ""
        if self._by_hand is not None:
            return groups.has_members(group)
        if groups.is_current(self):
            return False
        if self._must_join:
            # It left for its silence, so it speaks for nobody: Kafka takes that while the group is empty.
            return groups.has_members(group)
        if not groups.is_member(self):
            self._may_fetch = False
            self.rejoin()
        return True

    def _may_name(self) -> bool:
        return self.log.groups.is_member(self) or self._by_hand is not None

    def _commit_by_timer(self) -> None:
        self._auto_commit = None
        if not self._closed and self.log.groups.is_current(self):
            self.log.commit(self._rows(None))

    async def _commit_quietly(self) -> None:
        if self.log.groups.is_current(self) and (rows := self._rows(None)):
            await self.log.commit(rows)


async def _after(before: list[asyncio.Task[None]], work: Callable[[], Awaitable[None]]) -> None:
    if before:
        await asyncio.wait(before)
    await work()


async def _call(callback: Any, keys: OrderedKeys) -> None:
    """Run a listener's callback, plain or asynchronous."""
    try:
        answer = callback(keys)
        if inspect.isawaitable(answer):
            await answer
    except Exception:  # noqa: BLE001  aiokafka swallows it too: a listener must not break its group
        _log.exception("a rebalance listener failed")
