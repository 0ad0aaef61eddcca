"""The ledger: folds usage into chained charges, one partition at a time, log to log in transactions.

Each partition of usage has its own transactional id and its own partition of state rows. Opening a partition first
takes the id (which fences whoever held it), then restores its state, then goes on reading usage from the offset that
stands in that state: never from the group's. Anything that goes wrong in a transaction closes the partition; opening
it again finds out what was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalOperation, KafkaError

from evenflow.billing.account import STATE_VERSION, Account, Folded, checked
from evenflow.billing.settings import BillingSettings
from evenflow.core.errors import Ended, Unavailable
from evenflow.core.placement.policy import Policy
from evenflow.events import streams
from evenflow.events.contracts.billing import ChargeRecorded, UsageMeasured
from evenflow.events.contracts.placement import StateRecorded
from evenflow.platform.broker.codec import Bad, Encoded, Fact, Received, decode, encode
from evenflow.platform.broker.dead_letters import parked
from evenflow.platform.broker.ports import Producer, Record
from evenflow.platform.broker.sending import send_all
from evenflow.platform.broker.transactions import STUCK
from evenflow.platform.cancelling import watched
from evenflow.platform.observability.signals import LEDGER_ENTRIES
from evenflow.platform.runtime import Runtime

GROUP = "evenflow.billing.ledger"
POLL_MS = 1_000
RESTORE_POLL_MS = 50
RESTORE_MAX_S = 60.0
PAUSE_S = 0.5
#: What closes a partition: its fate is read again from the log. A client that broke its transaction says so by an
#: AssertionError or an IllegalOperation, neither of which is a KafkaError.
_CLOSES = (KafkaError, IllegalOperation, TimeoutError, Unavailable, AssertionError)


class _Revoked(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Forget every open partition: the group moved, and whoever owns one now must open it."""

    def __init__(self, forget: Callable[[], None]) -> None:
        self._forget = forget

    def on_partitions_revoked(self, revoked: Any) -> None:
        self._forget()

    def on_partitions_assigned(self, assigned: Any) -> None:
        pass


class _Open:
    """One partition in hand."""

    def __init__(self, producer: Producer, account: Account) -> None:
        self.producer = producer
        self.account = account


class Ledger:
    """Runs until stopped; `policy` gives the policy in force and its hash, `ended` is told what it can't survive."""

    def __init__(
        self,
        runtime: Runtime,
        settings: BillingSettings,
        policy: Callable[[], tuple[Policy, str]],
        ended: Callable[[BaseException], None],
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._policy = policy
        self._ended = ended
        self._open: dict[int, _Open] = {}
        self._closing: list[Producer] = []
        self._consumer = runtime.transport.consumer(
            client_id=f"{runtime.name}-{runtime.instance}-ledger",
            group_id=GROUP,
            session_timeout_ms=settings.session_timeout_ms,
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join the group and go on in the background."""
        self._consumer.subscribe([streams.USAGE.name], listener=_Revoked(self._forget))
        await self._consumer.start()
        self._task = watched(asyncio.get_running_loop().create_task(self._run(), name="the ledger"), self._ended)

    async def stop(self) -> None:
        """Finish the transaction in hand and leave the group."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._forget()
        await self._close_forgotten()
        await self._consumer.stop()

    def _forget(self) -> None:
        self._closing += [held.producer for held in self._open.values()]
        self._open.clear()

    async def _close_forgotten(self) -> None:
        while self._closing:
            producer = self._closing.pop()
            try:
                await producer.stop()
            except KafkaError as error:
                self._runtime.log.info("a fenced ledger producer was closed", problem=str(error))

    async def _run(self) -> None:
        try:
            await self._fold_for_ever()
        except Exception as error:
            self._ended(error)
            raise

    async def _fold_for_ever(self) -> None:
        while True:
            await self._close_forgotten()
            batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=self._settings.batch_max)
            for partition, records in sorted(batches.items()):
                try:
                    async with asyncio.timeout(self._settings.transaction_limit_s):
                        await self._take(partition, records)
                except _CLOSES as error:
                    self._runtime.log.warning(
                        "ledger partition reopened", partition=partition.partition, problem=f"{error!r}"
                    )
                    await self._reopen_later(partition, records[0].offset)

    async def _reopen_later(self, partition: TopicPartition, offset: int) -> None:
        held = self._open.pop(partition.partition, None)
        if held is not None:
            self._closing.append(held.producer)
        if partition in self._consumer.assignment():
            self._consumer.seek(partition, offset)
        await self._runtime.clock.sleep(PAUSE_S)

    async def _take(self, partition: TopicPartition, records: Sequence[Record]) -> None:
        held = self._open.get(partition.partition)
        if held is None:
            held = await self._opened(partition.partition)
            start = held.account.next_offset
            if start is not None and start != records[0].offset:
                self._consumer.seek(partition, start)
                self._open[partition.partition] = held
                await self._show_progress(partition, start)
                return
            self._open[partition.partition] = held
        usage: list[tuple[Record, Received, UsageMeasured]] = []
        letters: list[Encoded] = []
        runtime = self._runtime
        for record in records:
            received = decode(record, streams.USAGE)
            if isinstance(received, Bad):
                letters.append(self._letter(received))
            elif isinstance(received.body, UsageMeasured):
                usage.append((record, received, received.body))
        policy, policy_hash = self._policy()
        folded = held.account.fold(
            [body for _, _, body in usage],
            policy,
            policy_hash,
            next_offset=records[-1].offset + 1,
            now_ms=runtime.clock.now_ms(),
        )
        held.account.forget(runtime.clock.now_ms() - self._settings.entry_retention_ms, folded)
        letters += [self._letter(Bad(usage[index][0], "refused", why)) for index, why in folded.refused.items()]
        causes = [received for _, received, _ in usage]
        with runtime.tracing.span("ledger batch", links=[one.envelope.traceparent for one in causes]):
            await self._commit(held.producer, partition.partition, folded, causes, letters)
        for key, row in folded.rows.items():
            held.account.apply(key, row)
        for fact in folded.facts:
            if isinstance(fact, ChargeRecorded):
                runtime.metrics.of(LEDGER_ENTRIES).record(1, kind=str(fact.kind))
        await self._show_progress(partition, records[-1].offset + 1)

    def _letter(self, bad: Bad) -> Encoded:
        """A dead letter, written in the transaction of its batch."""
        runtime = self._runtime
        return parked(
            bad.record, code=bad.code, problem=bad.problem, service=runtime.name, now_ms=runtime.clock.now_ms()
        )

    async def _show_progress(self, partition: TopicPartition, offset: int) -> None:
        """The group's offset is for lag displays only; nobody reads it back."""
        try:
            await self._consumer.commit({partition: offset})
        except KafkaError as error:
            self._runtime.log.info("ledger progress not shown", problem=str(error))

    async def _commit(
        self,
        producer: Producer,
        partition: int,
        folded: Folded,
        causes: Sequence[Received],
        letters: Sequence[Encoded],
    ) -> None:
        runtime = self._runtime
        now_ms, began_ms = runtime.clock.now_ms(), runtime.clock.monotonic_ms()
        await producer.begin_transaction()
        records: list[Encoded] = []
        for fact, index in zip(folded.facts, folded.causes, strict=True):
            identity = f"{fact.TYPE}-{getattr(fact, 'entry', '')}"
            one = Fact(streams.BILLING, fact, id=identity, cause=causes[index])
            records.append(encode(one, source=runtime.name, now_ms=now_ms, wire=runtime.wire))
        records += letters
        partitions: list[int | None] = [None] * len(records)
        for key, row in folded.rows.items():
            body = StateRecorded(state_version=STATE_VERSION, row=row) if row is not None else None
            state = Fact(streams.BILLING_STATE, body, key=key, id=f"billing-state-{partition}-{key}")
            records.append(encode(state, source=runtime.name, now_ms=now_ms, wire=runtime.wire))
            partitions.append(partition)
        await send_all(producer, records, partitions)
        await runtime.point("billing.before-commit")
        await producer.commit_transaction()
        runtime.tracing.published(records, runtime.clock.monotonic_ms() - began_ms)
        await runtime.point("billing.after-commit")

    async def _opened(self, partition: int) -> _Open:
        runtime = self._runtime
        client = f"{runtime.name}-{runtime.instance}"
        producer = runtime.transport.producer(client_id=client, transactional_id=f"evenflow.billing.{partition}")
        await producer.start()
        account = Account()
        reader = runtime.transport.consumer(client_id=f"{client}-restore")
        await reader.start()
        try:
            state = TopicPartition(streams.BILLING_STATE.name, partition)
            reader.assign([state])
            end = (await reader.end_offsets([state]))[state]
            await reader.seek_to_beginning(state)
            async with asyncio.timeout(RESTORE_MAX_S):
                while await reader.position(state) < end:
                    for records in (await reader.getmany(timeout_ms=RESTORE_POLL_MS, max_records=1_000)).values():
                        for record in records:
                            self._restore(account, record)
        finally:
            await reader.stop()
        return _Open(producer, account)

    def _restore(self, account: Account, record: Record) -> None:
        received = decode(record, streams.BILLING_STATE)
        if not isinstance(received, Received):
            self._runtime.log.error("ledger state row can't be read", key=str(record.key))
            return
        body = received.body
        if isinstance(body, StateRecorded) and body.state_version > STATE_VERSION:
            version = f"version {body.state_version}; this build writes {STATE_VERSION}"
            raise Ended(f"ledger row {received.key} has {version}: run the newer one", exit_code=STUCK)
        try:
            row = checked(received.key, dict(body.row)) if isinstance(body, StateRecorded) else None
        except ValueError as error:
            raise Ended(
                f"ledger row {received.key[:120]!a} was written by no ledger: {error}", exit_code=STUCK
            ) from None
        account.apply(received.key, row, self._runtime.clock.now_ms())
