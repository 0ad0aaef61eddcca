"""Submitting straight to the log, signed: for producers that do not go through the console.

    async with Producer("kafka://host:9092", signer="physics-ci", key=load_key(Path("submit.key"))) as producer:
        task = await producer.submit({"tenant": "physics", "run": {"work_s": 60}})
        await producer.cancel(task, tenant="physics")

Placement checks the signature against the signer's public key (`evenflow signers add`). What it refuses it says as
`submission.refused` on the stream of assignments, with the reason; a submission is decided there, not here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

from aiokafka.errors import KafkaError
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.events.contract import Contract
from evenflow.events.contracts.tasks import TaskCancelRequested, TaskSubmitted
from evenflow.events.documents.task_specification import parse_task
from evenflow.events.streams import TASKS
from evenflow.platform.broker.codec import Fact, encode
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.broker.ports import Transport
from evenflow.platform.clock import Clock, Ids, RandomIds, SystemClock
from evenflow.platform.security.sealing import Sealer

SOURCE: Final = "producer"


class Producer:
    """Writes `evenflow.tasks.v1`. `log` is a log's URL, or the transport of this process."""

    def __init__(
        self,
        log: str | Transport,
        *,
        signer: str,
        key: Ed25519PrivateKey,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._clock: Clock = clock or SystemClock()
        self._ids: Ids = ids or RandomIds(self._clock)
        transport = make_transport(log, clock=self._clock, ids=self._ids) if isinstance(log, str) else log
        self._producer = transport.producer(client_id=signer)
        self._sealer = Sealer(signer, key)

    async def __aenter__(self) -> Self:
        """Connect."""
        await self._producer.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send what is buffered and disconnect."""
        await self._producer.stop()

    async def submit(self, specification: Mapping[str, Any]) -> str:
        """Write a submission; returns the task's id once the log has it. The same id and content again is one task.

        Raises FieldRefused for what placement's door would reject, Unavailable when the log does not confirm.
        """
        document = dict(specification)
        try:
            document = json.loads(json.dumps(document))
        except (TypeError, ValueError) as error:
            raise FieldRefused("specification", f"is no JSON document: {error}") from error
        task = parse_task(document, new_id=self._ids.new_id)
        raw = json.dumps({"id": task.id, **document}, ensure_ascii=False, separators=(",", ":")).encode()
        await self._write(TaskSubmitted(raw=raw), f"{task.tenant}/{task.id}")
        return task.id

    async def cancel(self, task: str, *, tenant: str = "default", reason: str = "") -> None:
        """Ask for a task's end. Raises Unavailable when the log does not confirm."""
        await self._write(TaskCancelRequested(tenant=tenant, task=task, reason=reason), f"{tenant}/{task}")

    async def _write(self, body: Contract, key: str) -> None:
        fact = Fact(TASKS, body, key=key)
        now_ms = self._clock.now_ms()
        record = self._sealer(encode(fact, source=SOURCE, now_ms=now_ms, new_id=self._ids.new_id()))
        try:
            await self._producer.send_and_wait(record.topic, value=record.value, key=record.key, headers=record.headers)
        except KafkaError as error:
            raise Unavailable(f"the log did not confirm {key}: {error}") from error
