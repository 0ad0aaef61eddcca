"""The product's own entrances, used as producers and operators use them: records straight onto the log, patiently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.events.contract import Contract
from evenflow.events.contracts.console import DatasetAddRequested, DatasetDropRequested, DocumentPublished
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskChangeRequested
from evenflow.events.envelope import Envelope, dataschema_of, to_headers
from evenflow.events.streams import Stream
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.codec import Encoded, Fact, encode
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.ports import Producer
from evenflow.platform.clock import Clock, Ids
from evenflow.sim.world.paths.frontdoor import FrontDoor

RETRY_S: Final = 0.5
OPERATOR: Final = "operator"
_TENANT: Final = "default"
_ABOUT_TASKS: Final = (EventType.TASK_CANCEL_REQUESTED, EventType.TASK_CHANGE_REQUESTED)


class LogDoor:
    """Writes as the console and the task producers do. A log that is away is tried again until it answers."""

    def __init__(self, transport: EmbeddedTransport, clock: Clock, ids: Ids, front: FrontDoor | None = None) -> None:
        self._front = front
        self._producer: Producer = transport.producer(client_id="world")
        self._clock = clock
        self._ids = ids
        self._versions: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}

    async def start(self) -> None:
        """Connect."""
        await self._producer.start()

    async def submit(self, specification: object) -> None:
        """One `task.submitted` whose value is the specification as written; through the front door if there is one."""
        if self._front is not None:
            await self._front.submit(specification)
            return
        named = specification if isinstance(specification, Mapping) else {}
        new_id = self._ids.new_id()
        key = f"{named.get('tenant', _TENANT)}/{named.get('id', new_id)}"
        value = json.dumps(specification, ensure_ascii=False).encode("utf-8", "surrogatepass")
        await self._write(streams.TASKS, EventType.TASK_SUBMITTED, key, value, new_id)

    async def request(self, kind: str, subject: str, body: Mapping[str, Any]) -> None:
        """A request about a task (tenant/task or task) or a node."""
        if kind in _ABOUT_TASKS:
            tenant, _, task = subject.rpartition("/")
            known: Contract = (
                TaskCancelRequested(tenant=tenant or _TENANT, task=task, reason=str(body.get("reason", "")))
                if kind == EventType.TASK_CANCEL_REQUESTED
                else TaskChangeRequested(tenant=tenant or _TENANT, task=task, change=dict(body))
            )
            await self.state(streams.TASKS, known)
        else:
            contract: Any = CONTRACTS[kind]
            await self.state(streams.REQUESTS, contract(node=subject, **body))

    async def add_dataset(self, document: Mapping[str, Any]) -> None:
        """Register a dataset."""
        body = DatasetAddRequested(dataset=str(document.get("id")), document=dict(document))
        await self.state(streams.REQUESTS, body)

    async def drop_dataset(self, dataset: str, site: str) -> None:
        """Say that a copy is gone."""
        await self.state(streams.REQUESTS, DatasetDropRequested(dataset=dataset, site=site))

    async def document(self, kind: str, name: str, body: Mapping[str, Any]) -> None:
        """A new version of a document: the last one with these fields changed, sections of a policy merged."""
        version, before = self._versions.get((kind, name), (0, {}))
        merged = {**before, **_merged(before, body)}
        self._versions[kind, name] = (version + 1, merged)
        published = DocumentPublished(
            kind=kind,  # type: ignore[arg-type]  # a closed list, checked by the contract
            name=name,
            version=version + 1,
            document=merged,
            who=OPERATOR,
        )
        await self.state(streams.POLICIES, published)

    async def publish(self, topic: str, key: bytes | None, value: bytes | None, headers: Mapping[str, bytes]) -> None:
        """Any bytes."""
        if key is None and value is None:
            raise FieldRefused("publish", "needs a key or a value")
        await self._send(Encoded(topic, key or b"", value, list(headers.items())), keyless=key is None)

    async def state(self, stream: Stream, body: Contract) -> None:
        """A fact or request of the operator's."""
        fact = Fact(stream, body)
        await self._send(encode(fact, source=OPERATOR, now_ms=self._clock.now_ms(), new_id=self._ids.new_id()))

    async def _write(self, stream: Stream, kind: str, key: str, value: bytes, new_id: str) -> None:
        envelope = Envelope(
            id=new_id,
            type=kind,
            source="producer",
            subject=key,
            time_ms=self._clock.now_ms(),
            dataschema=dataschema_of(kind, 1),
            correlation_id=new_id,
        )
        await self._send(Encoded(stream.name, key.encode("utf-8", "surrogatepass"), value, to_headers(envelope)))

    async def _send(self, record: Encoded, *, keyless: bool = False) -> None:
        while True:
            try:
                await self._producer.send_and_wait(
                    record.topic, record.value, None if keyless else record.key, headers=record.headers
                )
            except MessageSizeTooLargeError as error:
                raise FieldRefused("value", f"is too large for the log: {error}") from None
            except KafkaError as error:
                if not error.retriable:
                    raise
                await asyncio.sleep(RETRY_S)
            else:
                return


def _merged(before: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name, value in changes.items():
        old = before.get(name)
        merged[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged
