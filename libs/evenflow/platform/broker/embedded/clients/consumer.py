"""The embedded consumer: aiokafka's methods, errors and group behaviour, without a network.

A poll that has data ready still gives the loop away now and then, so that one busy reader never starves the others of
its process.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import ConsumerStoppedError

from evenflow.platform.broker.embedded.clients.giving_way import YIELD_EVERY, give_way
from evenflow.platform.broker.embedded.clients.membership import Membership
from evenflow.platform.broker.embedded.clients.positions import Positions

if TYPE_CHECKING:
    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.embedded.records import LogRecord


class EmbeddedConsumer(Membership):
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
        super().__init__(
            log,
            group_id,
            Positions(log, group_id, committed_only=committed_only, reset=auto_offset_reset),
            client_id=client_id,
            strategy=strategy,
            session_timeout_ms=session_timeout_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            auto_commit_ms=auto_commit_interval_ms if enable_auto_commit else None,
        )
        self._topics: tuple[str, ...] = topics
        self._pattern: re.Pattern[str] | None = None
        self._max_poll_records = max_poll_records
        self._started = False
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

    def __aiter__(self) -> EmbeddedConsumer:
        return self

    async def __anext__(self) -> LogRecord:
        try:
            return await self.getone()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[LogRecord]]:
        """Records by partition; empty when none came within the time-out. Raises as `getone`."""
        if max_records is not None and max_records < 1:
            message = "`max_records` must be a positive Integer"
            raise ValueError(message)
        await self._enter_poll()
        end = self.log.loop.time() + timeout_ms / 1000
        stood = self._positions.moves_so_far() if self.log.hooks.patient_polls else None
        while True:
            if self._may_fetch:
                taken = self._positions.take_many(partitions, max_records or self._max_poll_records, self.wake)
                if taken:
                    self._handed_out()
                    return taken
            if stood is not None:
                if timeout_ms <= 0 or stood != self._positions.moves_so_far():
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

    def wake_for(self, key: TopicPartition) -> None:
        """A partition may be read further: let waiting polls look there."""
        if self._positions.grew(key, self.wake):
            self.wake()

    def wake(self) -> None:
        """Let waiting polls look again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _resolve(future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
