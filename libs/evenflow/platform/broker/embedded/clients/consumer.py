"""The embedded consumer: aiokafka's methods, errors and group behaviour, without a network.

Stopping leaves the group at once. A member that does not poll for `max_poll_interval_ms` leaves by itself and joins
again at its next poll. Listener callbacks run before records of the new assignment are handed out; what they raise is
logged and swallowed, as aiokafka does.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import ConsumerStoppedError

from evenflow.platform.broker.embedded.clients.giving_way import YIELD_EVERY, give_way
from evenflow.platform.broker.embedded.clients.offsets import OffsetControl
from evenflow.platform.broker.embedded.clients.positions import OrderedKeys, Positions

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.records import LogRecord

_log = logging.getLogger(__name__)


class EmbeddedConsumer(OffsetControl):
    """A reader of the embedded log. See `ports.Consumer`; `strategy` names one of `assignors.ASSIGNORS`."""

    def __init__(  # noqa: PLR0913  aiokafka's own settings
        self,
        log: EmbeddedLog,
        *topics: str,
        client_id: str = "evenflow",
        group_id: str | None = None,
        isolation_level: str = "read_committed",
        auto_offset_reset: str = "earliest",
        enable_auto_commit: bool = False,
        auto_commit_interval_ms: int = 5_000,
        session_timeout_ms: int = 10_000,
        max_poll_interval_ms: int = 300_000,
        max_poll_records: int | None = None,
        strategy: str = "roundrobin",
    ) -> None:
        committed_only = isolation_level == "read_committed"
        positions = Positions(log, group_id, committed_only=committed_only, reset=auto_offset_reset)
        super().__init__(log, group_id, positions)
        self.client_id = client_id
        self.strategy = strategy
        self.session_timeout_s = session_timeout_ms / 1000
        self.member_id = ""
        self.generation = -1
        self.context = contextvars.copy_context()
        self._topics: tuple[str, ...] = topics
        self._pattern: re.Pattern[str] | None = None
        self._listener: ConsumerRebalanceListener | None = None
        self._by_hand: list[TopicPartition] | None = None
        self._max_poll_s = max_poll_interval_ms / 1000
        self._max_poll_records = max_poll_records
        self._auto_commit_s = auto_commit_interval_ms / 1000 if enable_auto_commit and group_id else None
        self._auto_commit: asyncio.TimerHandle | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._started = False
        self._may_fetch = False
        self._must_join = False
        self._joined: asyncio.Future[None] | None = None
        self._callbacks: list[asyncio.Task[None]] = []
        self._poll_deadline = 0.0
        self._poll_timer: asyncio.TimerHandle | None = None
        self._polls = 0

    # ---- life

    async def start(self) -> None:
        """Join the group and wait for an assignment, or take the partitions named.

        Raises UnknownTopicOrPartitionError at once for a topic that does not exist.
        """
        if self._started:
            message = "Did you call `start` twice?"
            raise AssertionError(message)
        self.context = contextvars.copy_context()
        for name in self._topics:
            self.log.topic(name)
        self._started = True
        await give_way()
        if self._by_hand is not None:
            self._take_by_hand()
        elif self._subscribed():
            await self._subscribe_now()

    async def _subscribe_now(self) -> None:
        if self.group_id is None:
            self._by_hand = [
                partition.key
                for topic in self.log.topics.values()
                if self.wants(topic.name)
                for partition in topic.partitions
            ]
            self._take_by_hand()
            return
        self._joined = self.log.loop.create_future()
        self._join()
        try:
            await self._joined
        except asyncio.CancelledError:
            self.log.groups.leave(self)
            raise

    async def stop(self) -> None:
        """Leave the group; whoever waits in a poll gets ConsumerStoppedError."""
        if self._closed:
            return
        if self._auto_commit_s is not None:
            await self._commit_quietly()
        self._closed = True
        for callback in self._callbacks:
            callback.cancel()
        for timer in (self._auto_commit, self._poll_timer):
            if timer is not None:
                timer.cancel()
        self.log.groups.leave(self)
        self._let_go()
        self.wake()
        await give_way()

    # ---- what is read

    def subscribe(
        self,
        topics: Sequence[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Read topics in the group. Raises TypeError for a string in place of a list, ValueError for a bad pattern."""
        if isinstance(topics, str) or not (topics or pattern) or (topics and pattern):
            message = "You should provide either `topics`, as a list of names, or `pattern`"
            raise TypeError(message)
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            message = f"{pattern!r} is not a valid pattern: {error}"
            raise ValueError(message) from error
        self._topics = tuple(topics)
        self._listener = listener
        self._by_hand = None
        if self._started:
            for name in self._topics:
                self.log.topic(name)
            self._must_join = True

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group's help. Raises UnknownTopicOrPartitionError."""
        self._by_hand = [TopicPartition(*key) for key in partitions]
        self._topics, self._pattern = (), None
        for key in self._by_hand:
            self.log.partition(key)
        if self._started:
            self._take_by_hand()

    def assignment(self) -> set[TopicPartition]:
        """The partitions this consumer has."""
        return self._positions.keys()

    def wants(self, topic: str) -> bool:
        """Whether its subscription covers a topic."""
        return topic in self._topics or (self._pattern is not None and self._pattern.match(topic) is not None)

    def _subscribed(self) -> bool:
        return bool(self._topics) or self._pattern is not None

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Partition numbers of a topic, None for an unknown one."""
        found = self.log.topics.get(topic)
        return None if found is None else set(range(len(found.partitions)))

    # ---- membership: called by the log's groups, in this consumer's context

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

    # ---- polling

    async def getone(self, *partitions: TopicPartition) -> LogRecord:
        """The next record. Raises ConsumerStoppedError, and the errors of the reset rule "none"."""
        await self._enter_poll()
        while True:
            if self._may_fetch:
                record = self._positions.take_one(partitions, self.wake)
                if record is not None:
                    self._handed_out()
                    return record.copy()
            await self._wait(None)

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[LogRecord]]:
        """Records by partition; empty when none came within the time-out. Raises as `getone`."""
        if max_records is not None and max_records < 1:
            message = "`max_records` must be a positive Integer"
            raise ValueError(message)
        await self._enter_poll()
        end = self.log.loop.time() + timeout_ms / 1000
        stood = self._positions.consumed() if self.log.hooks.patient_polls else None
        while True:
            if self._may_fetch:
                taken = self._positions.take_many(partitions, max_records or self._max_poll_records, self.wake)
                if taken:
                    self._handed_out()
                    return taken
            if stood is not None:
                if timeout_ms <= 0 or stood != self._positions.consumed():
                    break
                await self._wait(None)
                continue
            left = end - self.log.loop.time()
            if left <= 0:
                break
            await self._wait(left)
        self._handed_out()
        await give_way()
        return {}

    async def _enter_poll(self) -> None:
        if self._closed:
            raise ConsumerStoppedError
        if self._must_join and self._by_hand is None:
            self._let_go()
            self._join()
        self._polls += 1
        if self._polls % YIELD_EVERY == 0:
            await give_way()
            if self._closed:
                raise ConsumerStoppedError

    def _handed_out(self) -> None:
        self._polled()
        if self._auto_commit_s is not None and self._auto_commit is None:
            self._auto_commit = self.log.loop.call_later(self._auto_commit_s, self._commit_by_timer)

    async def _wait(self, seconds: float | None) -> None:
        """Until woken, at most `seconds`."""
        future: asyncio.Future[None] = self.log.loop.create_future()
        self._waiting.append(future)
        timer = None if seconds is None else self.log.loop.call_later(seconds, _resolve, future)
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            if future in self._waiting:
                self._waiting.remove(future)
        if self._closed:
            raise ConsumerStoppedError

    def wake(self) -> None:
        """Let waiting polls look again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _resolve(future)

    # ---- commits

    def _must_not_commit(self) -> bool:
        """Whether the group went on without this member; a member that was put out joins anew."""
        groups, group = self.log.groups, self.group_id or ""
        if self._by_hand is not None:
            return groups.has_members(group)
        if groups.is_current(self):
            return False
        if not groups.is_member(self) and not self._must_join:
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


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


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
    except Exception:
        _log.exception("a rebalance listener failed")
