"""From placement's ended attempts and agents' counted transfers to usage, re-keyed by queue.

Only accepted figures count: an attempt's end states them, whatever else an agent may have said. Every entry's id is
made of task, attempt, member and kind, so metering the same fact again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.core.lifecycle.attempt import AttemptEnd
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.pricing.charge import transfer_cost_micro
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptReclaimed, TransferFailed, TransferFinished
from evenflow.events.contracts.billing import UsageMeasured
from evenflow.events.contracts.placement import AttemptUse, MemberUse, TaskEnded, TaskRequeued
from evenflow.platform.broker.codec import Fact, Received


def meter(received: Received) -> list[Fact]:
    """The usage that one event states."""
    body = received.body
    if isinstance(body, TaskEnded | TaskRequeued) and body.use is not None:
        return _facts(_attempt(body, body.use, at_ms=received.envelope.time_ms), received)
    if isinstance(body, TransferFinished | TransferFailed):
        return _facts(_transfer(body, at_ms=received.envelope.time_ms), received)
    if isinstance(body, AttemptReclaimed) and body.outcome.stop_ms and not body.leftover:
        return _facts(_stop(body), received)
    return []


def _facts(usage: Iterator[UsageMeasured], cause: Received) -> list[Fact]:
    return [Fact(streams.USAGE, one, id=f"usage-{one.entry}", cause=cause) for one in usage]


def _attempt(body: TaskEnded | TaskRequeued, use: AttemptUse, *, at_ms: int) -> Iterator[UsageMeasured]:
    for member in use.members:
        for kind, duration_ms in _kinds(use, member):
            work_of_first = kind is EntryKind.WORK and member.place.member == use.members[0].place.member
            yield UsageMeasured(
                entry=f"{body.tenant}/{body.task}/{use.attempt}/{member.place.member}/{kind}",
                kind=kind,
                tenant=body.tenant,
                task=body.task,
                attempt=use.attempt,
                member=member.place.member,
                queue=body.queue,
                node=member.place.node,
                site=member.place.site,
                duration_ms=duration_ms,
                device_milli=sum(device.milli for device in member.place.devices),
                cpu_milli=member.place.cpu_milli,
                device_milli_ms=sum(device.milli for device in member.place.devices) * duration_ms,
                price_per_hour_micro=member.place.price_per_hour_micro,
                cpu_price_per_hour_micro=member.place.cpu_price_per_hour_micro,
                at_ms=at_ms,
                crossing=use.crossing if work_of_first else None,
                crossing_wait_ms=use.wait_ms if work_of_first else 0,
            )


def _kinds(use: AttemptUse, member: MemberUse) -> Iterator[tuple[EntryKind, int]]:
    if member.place.member == use.members[0].place.member:
        yield EntryKind.WAIT, use.wait_ms
    if not member.started:
        yield EntryKind.FAILED_START, member.start_ms
        return
    yield EntryKind.START, member.start_ms
    yield (EntryKind.LOST if use.end is AttemptEnd.LOST else EntryKind.WORK), member.run_ms


def _stop(body: AttemptReclaimed) -> Iterator[UsageMeasured]:
    yield UsageMeasured(
        entry=f"{body.tenant}/{body.task}/{body.attempt}/{body.member}/{EntryKind.STOP}",
        kind=EntryKind.STOP,
        tenant=body.tenant,
        task=body.task,
        attempt=body.attempt,
        member=body.member,
        queue=body.queue,
        node=body.node,
        site=body.site,
        duration_ms=body.outcome.stop_ms,
        device_milli=body.device_milli,
        cpu_milli=body.cpu_milli,
        device_milli_ms=body.device_milli * body.outcome.stop_ms,
        price_per_hour_micro=body.price_per_hour_micro,
        cpu_price_per_hour_micro=body.cpu_price_per_hour_micro,
        at_ms=body.at_ms,
    )


def _transfer(body: TransferFinished | TransferFailed, *, at_ms: int) -> Iterator[UsageMeasured]:
    if not body.counted_bytes:
        return
    yield UsageMeasured(
        entry=f"{body.tenant}/{body.task}/{body.attempt}/{body.member}/{EntryKind.TRANSFER}-{body.dataset}",
        kind=EntryKind.TRANSFER,
        tenant=body.tenant,
        task=body.task,
        attempt=body.attempt,
        member=body.member,
        queue=body.queue,
        node=body.node,
        site=body.to_site,
        duration_ms=body.took_ms,
        bytes=body.counted_bytes,
        cost_micro=transfer_cost_micro(
            counted_bytes=body.counted_bytes, bytes_per_read=body.bytes, price_micro=body.price_micro
        ),
        at_ms=at_ms,
    )
