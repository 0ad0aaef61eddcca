"""Every user on every topic, reading and writing: what the list allows works, and the broker refuses everything else.

Transactional ids, groups and the making of topics are tried as well. The clients are plain ones of the library, so that
what refuses is the broker and nothing of the product.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)

from evenflow.events.streams import topics
from evenflow.platform.security.kafka_login import client_security
from evenflow.platform.security.permissions import (
    ADMIN,
    OUTSIDE,
    SERVICES,
    TRANSACTIONS,
    Operation,
    may,
    permissions,
    user_of,
    users,
)
from evenflow.testkit.locked.servers import ROOT, LockedKafka
from evenflow.testkit.servers.process import LOOPBACK

WAIT_MS: Final = 4_000
LIMIT_S: Final = 15.0
NOT_AUTHORISED: Final = 29
REFUSALS: Final = (
    TopicAuthorizationFailedError, GroupAuthorizationFailedError, TransactionalIdAuthorizationFailed,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cell:
    """One try: who, what, on what; whether the list allows it; what the broker said (empty = it worked)."""

    user: str
    operation: str
    name: str
    allowed: bool
    said: str

    @property
    def right(self) -> bool:
        """Whether the broker did what the list says; any other failure than a refusal is wrong as well."""
        return self.said == "" if self.allowed else self.said in {kind.__name__ for kind in REFUSALS}


class Matrix:
    """Tries all of it on one broker whose topics and permissions are in place."""

    def __init__(self, kafka: LockedKafka, *, agents_on_log: bool = False) -> None:
        self._kafka = kafka
        self._agents_on_log = agents_on_log
        self._list = permissions(agents_on_log=agents_on_log)
        self._topics = [stream.name for stream in topics()]

    async def run(self) -> list[Cell]:
        """All cells, user by user."""
        await self._fill()
        rows = await asyncio.gather(*(self._user(user) for user in users(agents_on_log=self._agents_on_log)))
        return [cell for row in rows for cell in row]

    async def _fill(self) -> None:
        """One record in each topic, so that a reader has something to read."""
        producer = AIOKafkaProducer(**self._common(ROOT))
        await producer.start()
        try:
            for topic in self._topics:
                await producer.send_and_wait(topic, b"matrix", key=b"matrix", partition=0)
        finally:
            await producer.stop()

    async def _user(self, user: str) -> list[Cell]:
        cells = await self._writes(user)
        cells += await self._reads(user)
        for party, prefix in TRANSACTIONS.items():
            said = await outcome(self._begin(user, f"{prefix}matrix-0"))
            cells.append(Cell(user, "begin", f"{prefix}*", user == user_of(party), said))
        stems = {party: f"{party}." for party in SERVICES} | dict(OUTSIDE)
        for party, stem in stems.items():
            said = await outcome(self._join(user, f"{stem}matrix"))
            cells.append(Cell(user, "join", f"{stem}*", user == user_of(party), said))
        said = await outcome(self._create(user))
        cells.append(Cell(user, "create", "evenflow.matrix", user == ADMIN, said))
        return cells

    async def _writes(self, user: str) -> list[Cell]:
        # Not idempotent: a refused record would be missing in the count of those after it.
        producer = AIOKafkaProducer(**self._common(user), acks="all", enable_idempotence=False)
        await producer.start()
        try:
            cells = []
            for topic in self._topics:
                said = await outcome(producer.send_and_wait(topic, b"matrix", key=b"matrix", partition=0))
                cells.append(Cell(user, "write", topic, may(self._list, user, Operation.WRITE, topic), said))
            return cells
        finally:
            await producer.stop()

    async def _reads(self, user: str) -> list[Cell]:
        hidden = await self._hidden(user)
        consumer = AIOKafkaConsumer(**self._common(user))
        await consumer.start()
        try:
            cells = []
            for topic in self._topics:
                said = hidden.get(topic) or await outcome(_first(consumer, TopicPartition(topic, 0)))
                cells.append(Cell(user, "read", topic, may(self._list, user, Operation.READ, topic), said))
            return cells
        finally:
            await consumer.stop()

    async def _hidden(self, user: str) -> dict[str, str]:
        """What the broker says of topics that the user may not even see; a reader would wait for them in silence."""
        admin = AIOKafkaAdminClient(**self._common(user))
        try:
            await admin.start()
            described = await admin.describe_topics(self._topics)
        finally:
            await admin.close()
        return {entry["topic"]: for_code(entry["error_code"]).__name__ for entry in described if entry["error_code"]}

    async def _begin(self, user: str, transactional_id: str) -> None:
        producer = AIOKafkaProducer(**self._common(user), transactional_id=transactional_id)
        try:
            await producer.start()
        finally:
            await producer.stop()

    async def _join(self, user: str, group: str) -> None:
        """Commit an offset as a member would; a topic that the user may read is at hand for those who have groups."""
        topic = next((name for name in self._topics if may(self._list, user, Operation.READ, name)), None)
        consumer = AIOKafkaConsumer(**self._common(user), group_id=group, enable_auto_commit=False)
        await consumer.start()
        try:
            place = TopicPartition(topic or self._topics[0], 0)
            consumer.assign([place])
            await consumer.committed(place)
            await consumer.commit({place: 0})
        finally:
            await consumer.stop()

    async def _create(self, user: str) -> None:
        admin = AIOKafkaAdminClient(**self._common(user))
        try:
            await admin.start()
            topic = NewTopic("evenflow.matrix", 1, 1)
            (entry,) = (await admin.create_topics([topic], timeout_ms=WAIT_MS)).to_object()["topic_errors"]
            if entry["error_code"] == NOT_AUTHORISED:
                raise TopicAuthorizationFailedError
            if entry["error_code"]:
                raise KafkaError(f"code {entry['error_code']}")
        finally:
            await admin.close()

    def _common(self, user: str) -> dict[str, Any]:
        login = self._kafka.access(user)
        return {
            "bootstrap_servers": f"{LOOPBACK}:{self._kafka.port}",
            "request_timeout_ms": WAIT_MS,
            **client_security(login, login.context()),
        }


async def outcome(work: Awaitable[object]) -> str:
    """The name of the error that came out; empty when it worked."""
    try:
        async with asyncio.timeout(LIMIT_S):
            await work
    except (KafkaError, TimeoutError) as error:
        return type(error).__name__
    return ""


async def _first(consumer: Any, place: TopicPartition) -> None:
    consumer.assign([place])
    consumer.seek(place, 0)
    batches = await consumer.getmany(timeout_ms=WAIT_MS, max_records=1)
    if not batches:
        raise TimeoutError


def table(cells: Sequence[Cell]) -> list[str]:
    """For people: a line for each user and kind of try, and one for each cell that is not as listed."""
    lines = [f"{'user':22} {'tried':8} {'allowed':>8} {'refused':>8} {'wrong':>6}"]
    kinds = dict.fromkeys((cell.user, cell.operation) for cell in cells)
    for user, operation in kinds:
        those = [cell for cell in cells if (cell.user, cell.operation) == (user, operation)]
        worked = sum(cell.right and cell.allowed for cell in those)
        refused = sum(cell.right and not cell.allowed for cell in those)
        lines.append(f"{user:22} {operation:8} {worked:8} {refused:8} {len(those) - worked - refused:6}")
    for cell in cells:
        if not cell.right:
            wanted = "allowed" if cell.allowed else "refused"
            lines.append(
                f"WRONG {cell.user} {cell.operation} {cell.name}: {wanted} by the list, {cell.said or 'worked'}"
            )
    return lines
