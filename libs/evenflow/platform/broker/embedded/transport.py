"""The embedded log as a transport: makes the clients of one process, and knows them when the process dies or pauses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from aiokafka import TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

from evenflow.core.errors import Refused
from evenflow.events.streams import LETTER_BYTES_MAX
from evenflow.platform.broker.embedded.clients.consumer import EmbeddedConsumer
from evenflow.platform.broker.embedded.clients.producer import EmbeddedProducer
from evenflow.platform.broker.embedded.retention import Retention
from evenflow.platform.broker.seam import EmbeddedKafkaBroker

if TYPE_CHECKING:
    import asyncio

    from faststream.kafka import KafkaBroker
    from faststream.middlewares import BaseMiddleware

    from evenflow.platform.broker.embedded.log import EmbeddedLog
    from evenflow.platform.broker.ports import Isolation, TopicSettings
    from evenflow.platform.clock import Clock, Ids

_SUBSCRIBER_SETTINGS = (
    "client_id",
    "group_id",
    "isolation_level",
    "auto_offset_reset",
    "enable_auto_commit",
    "auto_commit_interval_ms",
    "session_timeout_ms",
    "max_poll_interval_ms",
    "max_poll_records",
)


class EmbeddedTransport:
    """The clients of one process on one log; several transports share a log, one for each process."""

    def __init__(
        self,
        log: EmbeddedLog,
        *,
        clock: Clock,
        ids: Ids,
        graceful_timeout_s: float = 10.0,
        transaction_timeout_ms: int = 15_000,
    ) -> None:
        self.log = log
        self._clock = clock
        self._ids = ids
        self._graceful_timeout_s = graceful_timeout_s
        self._transaction_timeout_ms = transaction_timeout_ms
        self.retention = Retention(log)
        self._consumers: list[EmbeddedConsumer] = []
        self._evictions: list[asyncio.TimerHandle] = []

    def broker(self, *, client_id: str, middlewares: Sequence[type[BaseMiddleware]] = ()) -> KafkaBroker:
        """FastStream's broker over this log."""
        return EmbeddedKafkaBroker(
            self._subscriber_consumer,
            lambda: EmbeddedProducer(self.log, clock=self._clock),
            client_id=client_id,
            middlewares=middlewares,
            new_id=self._ids.new_id,
            graceful_timeout_s=self._graceful_timeout_s,
        )

    def _subscriber_consumer(self, **settings: Any) -> EmbeddedConsumer:
        """FastStream's consumer: aiokafka's settings by name, of which those about networks mean nothing here."""
        if settings.get("group_instance_id") is not None:
            message = "the embedded log has no static membership: leave group_instance_id out"
            raise Refused(message)
        known = {name: settings[name] for name in _SUBSCRIBER_SETTINGS if name in settings}
        strategies = settings.get("partition_assignment_strategy") or (RoundRobinPartitionAssignor,)
        return self._consumer(strategy=strategies[0].name.replace("_", ""), **known)

    def _consumer(self, *topics: str, **settings: object) -> EmbeddedConsumer:
        made = EmbeddedConsumer(self.log, *topics, **settings)  # type: ignore[arg-type]  # FastStream passes aiokafka's settings by name
        self._consumers = [*(consumer for consumer in self._consumers if not consumer.stopped), made]
        return made

    def consumer(
        self,
        *topics: str,
        client_id: str,
        group_id: str | None = None,
        isolation_level: Isolation = "read_committed",
        auto_offset_reset: Literal["earliest", "latest", "none"] = "earliest",
        session_timeout_ms: int = 10_000,
        max_poll_interval_ms: int = 300_000,
        sticky: bool = False,
    ) -> EmbeddedConsumer:
        """A consumer that never commits by itself."""
        return self._consumer(
            *topics,
            client_id=client_id,
            group_id=group_id,
            isolation_level=isolation_level,
            auto_offset_reset=auto_offset_reset,
            session_timeout_ms=session_timeout_ms,
            max_poll_interval_ms=max_poll_interval_ms,
            strategy="sticky" if sticky else "roundrobin",
        )

    def producer(self, *, client_id: str, transactional_id: str | None = None) -> EmbeddedProducer:
        """An idempotent producer. `client_id` is for logs only and has no use here."""
        return EmbeddedProducer(
            self.log,
            clock=self._clock,
            transactional_id=transactional_id,
            transaction_timeout_ms=self._transaction_timeout_ms,
            max_request_size=LETTER_BYTES_MAX,
        )

    async def provision(self, topics: Sequence[TopicSettings]) -> None:
        """Create missing topics. Raises Conflict for a topic with other settings, naming the mend."""
        self.log.provision(topics)

    async def lag(self, group_id: str) -> dict[TopicPartition, int]:
        """Records between the group's committed offsets and the end."""
        return self.log.lag(group_id)

    async def close(self) -> None:
        """Close the log, for all transports that share it."""
        self.log.close()

    # ---- for a simulated process

    def lost_contact(self) -> None:
        """The process died or stands still: its consumers leave their groups when their sessions end."""
        for consumer in self._consumers:
            self._evictions.append(
                self.log.loop.call_later(
                    consumer.session_timeout_s, self.log.groups.leave, consumer, context=self.log.world
                )
            )

    def regained(self) -> None:
        """The process goes on: those put out learn it at their next heartbeat and join again."""
        for eviction in self._evictions:
            eviction.cancel()
        self._evictions = []
        for consumer in self._consumers:
            self.log.loop.call_later(consumer.session_timeout_s / 3, consumer.rejoin, context=consumer.context)
