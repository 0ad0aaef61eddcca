"""Apache Kafka as a transport: aiokafka's clients with every wait bounded, and topics made from the registry.

Bounds: requests end after eight seconds (an unknown topic would otherwise hold its caller for forty), metadata are
looked at again after five, one batch holds a mebibyte so that a placement round is one trip a partition.
A stopped broker still makes idempotent sends wait for ever: callers put a time limit around them, and a limit that
passes means "unknown".
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)

from evenflow.core.errors import Refused, Unavailable
from evenflow.events.streams import LETTER_BYTES_MAX
from evenflow.platform.broker.seam import OrderedKafkaBroker, broker_settings, require_pinned_version
from evenflow.platform.broker.settings_of_topics import refuse_other_settings
from evenflow.platform.security.access import Access
from evenflow.platform.security.acls import Applied
from evenflow.platform.security.acls import apply as apply_acls
from evenflow.platform.security.kafka_login import broker_security, client_security, heard, why_not

if TYPE_CHECKING:
    from faststream.kafka import KafkaBroker
    from faststream.middlewares import BaseMiddleware

    from evenflow.platform.broker.ports import Consumer, Isolation, Producer, TopicSettings
    from evenflow.platform.clock import Clock, Ids
    from evenflow.platform.security.permissions import Permission

REQUEST_TIMEOUT_MS = 8_000
METADATA_AGE_MS = 5_000
BATCH_BYTES_MAX = 1 << 20
TRANSACTION_TIMEOUT_MS = 15_000
LED_TIMEOUT_S = 15.0
STOP_LIMIT_S = 10.0
# Initialising an id and adding partitions to a transaction are retried at this pace while an earlier commit completes;
# the client's default of 100 ms would dominate every placement round.
TRANSACTIONAL_BACKOFF_MS = 5


class KafkaTransport:
    """The clients of one process on one Kafka cluster. `servers` is host:port[,host:port…].

    A user logs in by SCRAM-SHA-512, over TLS where `access` says so. Raises what `Access.context` raises.
    """

    def __init__(
        self,
        servers: str,
        *,
        clock: Clock,
        ids: Ids,
        replication: int = 1,
        graceful_timeout_s: float = 10.0,
        access: Access | None = None,
    ) -> None:
        require_pinned_version()
        self._servers = servers
        self._clock = clock
        self._ids = ids
        self._replication = replication
        self._graceful_timeout_s = graceful_timeout_s
        self._access = access or Access("log")
        self._tls = self._access.context()

    def _common(self, client_id: str) -> dict[str, Any]:
        return {
            "bootstrap_servers": self._servers.split(","),
            "client_id": client_id,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "metadata_max_age_ms": METADATA_AGE_MS,
            **client_security(self._access, self._tls),
        }

    def broker(self, *, client_id: str, middlewares: Sequence[type[BaseMiddleware]] = ()) -> KafkaBroker:
        """FastStream's broker on this cluster."""
        return OrderedKafkaBroker(
            self._servers.split(","),
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            metadata_max_age_ms=METADATA_AGE_MS,
            max_batch_size=BATCH_BYTES_MAX,
            enable_idempotence=True,
            acks="all",
            security=broker_security(self._access, self._tls),
            **broker_settings(
                client_id=client_id,
                middlewares=middlewares,
                new_id=self._ids.new_id,
                graceful_timeout_s=self._graceful_timeout_s,
            ),
        )

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
    ) -> Consumer:
        """A consumer that never commits by itself; must be called on a running loop.

        The rebalance time-out is the session's, and heartbeats come twelve times a session.
        """
        assignor = _own_sticky_assignor() if sticky else RoundRobinPartitionAssignor
        made = OwnConsumer(
            *topics,
            **self._common(client_id),
            group_id=group_id,
            isolation_level=isolation_level,
            auto_offset_reset=auto_offset_reset,
            enable_auto_commit=False,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=session_timeout_ms,
            heartbeat_interval_ms=max(100, session_timeout_ms // 12),
            max_poll_interval_ms=max_poll_interval_ms,
            partition_assignment_strategy=(assignor,),
        )
        if issubclass(assignor, OwnStickyAssignor):
            assignor.generation_now = lambda: int(made._coordinator.generation)
        return cast("Consumer", made)

    def producer(self, *, client_id: str, transactional_id: str | None = None) -> Producer:
        """An idempotent producer with acks=all; must be called on a running loop."""
        settings: dict[str, Any] = {}
        if transactional_id is not None:
            settings = {
                "transactional_id": transactional_id,
                "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS,
                "retry_backoff_ms": TRANSACTIONAL_BACKOFF_MS,
            }
        made = OwnProducer(
            **self._common(client_id),
            acks="all",
            enable_idempotence=True,
            max_batch_size=BATCH_BYTES_MAX,
            max_request_size=LETTER_BYTES_MAX,
            **settings,
        )
        return cast("Producer", made)

    # ---- topics

    async def provision(self, topics: Sequence[TopicSettings]) -> None:
        """Create the missing topics and wait until every partition is led.

        Raises Conflict for a topic with other settings, Refused when the cluster refuses one, Unavailable when
        partitions stay without a leader.
        """
        admin = await self._admin()
        try:
            existing = set(await admin.list_topics())
            missing = [settings for settings in topics if settings.name not in existing]
            if missing:
                await self._create(admin, missing)
            await self._await_leaders(admin, [settings.name for settings in topics])
            await self._compare(admin, [settings for settings in topics if settings.name in existing])
        finally:
            await admin.close()

    async def _admin(self) -> AIOKafkaAdminClient:
        admin = AIOKafkaAdminClient(**self._common("evenflow-provision"))
        with heard() as said:
            try:
                await admin.start()
            except KafkaError as error:
                await admin.close()
                raise Unavailable(f"no Kafka at {self._servers}: {why_not(said, self._access)}") from error
        return admin

    async def _create(self, admin: AIOKafkaAdminClient, missing: Sequence[TopicSettings]) -> None:
        wanted = [
            NewTopic(settings.name, settings.partitions, self._replication, topic_configs=dict(settings.configs))
            for settings in missing
        ]
        answer = (await admin.create_topics(wanted, timeout_ms=REQUEST_TIMEOUT_MS)).to_object()
        # The client raises nothing here: errors are codes in the answer.
        for entry in answer["topic_errors"]:
            if not entry["error_code"]:
                continue
            kind = for_code(entry["error_code"])
            if kind is TopicAuthorizationFailedError:
                message = (
                    f"topic {entry['topic']} is missing and {self._access.user or 'nobody'} may not create topics: an "
                    "administrator runs evenflow acls apply, which creates them; this goes on then"
                )
                raise Unavailable(message, topic=entry["topic"])
            if kind is not TopicAlreadyExistsError:
                message = f"topic {entry['topic']} was not created: {kind.__name__} {entry.get('error_message') or ''}"
                raise Refused(message.strip(), topic=entry["topic"])

    async def _await_leaders(self, admin: AIOKafkaAdminClient, names: list[str]) -> None:
        """A client told to read a partition nobody leads spins for ever, so nobody starts before."""
        loop = asyncio.get_running_loop()
        end = loop.time() + LED_TIMEOUT_S
        while True:
            described = await admin.describe_topics(names)
            waiting = [
                entry["topic"]
                for entry in described
                if entry["error_code"] or any(part["leader"] < 0 for part in entry["partitions"])
            ]
            if not waiting:
                return
            if loop.time() >= end:
                message = f"no broker leads {', '.join(sorted(waiting))} after {LED_TIMEOUT_S:.0f} s"
                raise Unavailable(message)
            await self._clock.sleep(0.1)

    async def _compare(self, admin: AIOKafkaAdminClient, topics: Sequence[TopicSettings]) -> None:
        if not topics:
            return
        described = await admin.describe_topics([settings.name for settings in topics])
        partitions = {entry["topic"]: len(entry["partitions"]) for entry in described}
        resources = [ConfigResource(ConfigResourceType.TOPIC, settings.name) for settings in topics]
        configs: dict[str, dict[str, str]] = {}
        for response in await admin.describe_configs(resources):
            for code, reason, _, name, entries in response.resources:
                if code:
                    message = f"the settings of topic {name} can't be read: {for_code(code).__name__} {reason or ''}"
                    raise Unavailable(message.strip())
                configs[name] = {entry[0]: entry[1] for entry in entries}
        for settings in topics:
            refuse_other_settings(settings, partitions[settings.name], configs[settings.name])

    async def permit(self, wanted: Sequence[Permission]) -> Applied:
        """Add the permissions that are missing; raises what `acls.apply` raises."""
        admin = await self._admin()
        try:
            return await apply_acls(admin, wanted)
        finally:
            await admin.close()

    async def lag(self, group_id: str) -> dict[TopicPartition, int]:
        """Records between the group's committed offsets and the last stable offset, by partition."""
        admin = await self._admin()
        try:
            committed = await admin.list_consumer_group_offsets(group_id)
        finally:
            await admin.close()
        offsets = {key: value.offset for key, value in sorted(committed.items()) if value.offset >= 0}
        if not offsets:
            return {}
        reader = self.consumer(client_id="evenflow-lag")
        await reader.start()
        try:
            ends = await reader.end_offsets(list(offsets))
        finally:
            await reader.stop()
        return {key: max(0, ends[key] - offset) for key, offset in offsets.items()}

    async def close(self) -> None:
        """Nothing is held between calls."""


class _StopEnds:
    """A client of the library whose stop ends, with an error that can be caught.

    The library's own stop waits for tasks that it cancels. A sender that asks in vain for the fate of a transaction
    swallows its cancellation: then neither the stop nor any time limit around it ever ends. Others let it out, so that
    the caller looks cancelled.
    """

    async def stop(self) -> None:
        """Finish and disconnect. Raises KafkaError, its time-out after STOP_LIMIT_S among them."""
        whole: Coroutine[Any, Any, None] = super().stop()  # type: ignore[misc]  # the client's, by the order of bases
        stopping = asyncio.ensure_future(whole)
        done, _ = await asyncio.wait({stopping}, timeout=STOP_LIMIT_S)
        if not done:
            stopping.cancel()
            raise KafkaTimeoutError(f"the client did not stop within {STOP_LIMIT_S:.0f} s")
        if stopping.cancelled():
            raise KafkaError("the client cancelled a task of its own")
        stopping.result()


class OwnProducer(_StopEnds, AIOKafkaProducer):  # type: ignore[misc]  # aiokafka has no types
    """The client's producer."""


class OwnConsumer(_StopEnds, AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka has no types
    """The client's consumer."""


class OwnStickyAssignor(StickyPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
    """The sticky assignor, whose members say in which generation of the group they held what they held.

    aiokafka never says it, so a member that stood still, and comes back for what another holds meanwhile, would look
    as entitled as that one. Use a subclass for each member: the library keeps a member's memory on the class.
    """

    generation_now: Callable[[], int]

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        """Remember what is held, and since which generation."""
        super().on_assignment(assignment)
        cls.on_generation_assignment(cls.generation_now())


def _own_sticky_assignor() -> type[OwnStickyAssignor]:
    return type("MemberAssignor", (OwnStickyAssignor,), {})
