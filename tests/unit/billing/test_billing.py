"""Billing as others see it: exact charges, each once, chained by queue, settled crossings."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.billing import stores
from evenflow.billing.account import checked
from evenflow.core.ledger.chain import first_break
from evenflow.core.lifecycle.attempt import AttemptEnd
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.placement.policy import Charges
from evenflow.core.pricing.charge import Use, charge_micro, transfer_cost_micro
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptReclaimed, Outcome, TransferFinished
from evenflow.events.contracts.billing import ChargeRecorded, CrossingSettled, UsageMeasured
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.placement import (
    AttemptUse,
    CrossingTerms,
    DeviceShare,
    MemberPlace,
    MemberUse,
    TaskEnded,
    TaskRequeued,
)
from evenflow.platform.broker import follower
from evenflow.platform.broker.codec import Fact
from evenflow.testkit.pool import Pool, run


def place(milli: int = 1000, price_micro: int = 4_000_000) -> MemberPlace:
    return MemberPlace(
        member=0,
        node="n1",
        site="east",
        devices=(DeviceShare(index=0, milli=milli),) if milli else (),
        cpu_milli=2000,
        memory_bytes=1,
        disk_bytes=0,
        price_per_hour_micro=price_micro,
        cpu_price_per_hour_micro=100_000,
    )


def use(
    run_ms: int, end: AttemptEnd = AttemptEnd.SUCCEEDED, crossing: CrossingTerms | None = None, **member: Any
) -> AttemptUse:
    fields = {"started": True, "start_ms": 500} | member
    one = MemberUse(place=place(), ended_as="succeeded", run_ms=run_ms, **fields)
    return AttemptUse(attempt=1, generation=1, end=end, wait_ms=3_000, members=(one,), crossing=crossing)


def ended(task: str, attempt_use: AttemptUse, queue: str = "q") -> Fact:
    body = TaskEnded(
        tenant="default", task=task, queue=queue, epoch=1, end="succeeded", attempt=1, submitted_ms=0, use=attempt_use
    )
    return Fact(streams.ASSIGNMENTS, body, id=f"ended-{task}")


async def ledger(pool: Pool, **wanted: Any) -> list[ChargeRecorded]:
    found: list[ChargeRecorded] = await pool.bodies(streams.BILLING, ChargeRecorded)
    return [line for line in found if all(getattr(line, name) == value for name, value in wanted.items())]


def test_prices_are_exact_and_rounded_half_to_even_once() -> None:
    """Shares pro rata, cores where there is no device, list prices for transfers; charge factors apply."""
    charges = Charges()
    quarter = Use(EntryKind.WORK, duration_ms=100_000, device_milli=250, price_per_hour_micro=4_000_000)
    assert charge_micro(quarter, charges) == 27_778
    cores = Use(EntryKind.WORK, duration_ms=3_600_000, cpu_milli=2_500, cpu_price_per_hour_micro=100_000)
    assert charge_micro(cores, charges) == 250_000
    assert charge_micro(Use(EntryKind.TRANSFER, cost_micro=200_000), charges) == 200_000
    assert charge_micro(Use(EntryKind.LOST, duration_ms=10**6, device_milli=1, price_per_hour_micro=1), charges) == 0
    assert transfer_cost_micro(counted_bytes=500, bytes_per_read=1000, price_micro=3) == 2


def test_an_ended_attempt_is_charged_once_however_often_its_end_is_read() -> None:
    """INV6: one row per task, attempt, member and kind, whatever is redelivered."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        await pool.publish(ended("t1", use(3_600_000)), ended("t1", use(3_600_000)))
        await pool.pass_s(2)
        work = await ledger(pool, kind=EntryKind.WORK)
        assert [(line.amount_micro, line.device_milli_ms) for line in work] == [(4_000_000, 3_600_000_000)]
        kinds = sorted(str(line.kind) for line in await ledger(pool))
        assert kinds == ["start", "wait", "work"]
        assert all(line.amount_micro == 0 for line in await ledger(pool) if line.kind is not EntryKind.WORK)

    run(story)


def test_a_lost_attempt_is_recorded_as_lost_and_a_start_that_failed_as_such() -> None:
    """Neither is charged by the default policy, both are there to see."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        lost = TaskRequeued(
            tenant="default", task="t1", queue="q", epoch=1, use=use(60_000, AttemptEnd.LOST), failure_count=0
        )
        unstarted = TaskRequeued(
            tenant="default",
            task="t2",
            queue="q",
            epoch=1,
            use=use(0, AttemptEnd.START_FAILED, started=False, start_ms=60_000),
            failure_count=1,
        )
        await pool.publish(Fact(streams.ASSIGNMENTS, lost), Fact(streams.ASSIGNMENTS, unstarted))
        await pool.pass_s(2)
        assert [line.duration_ms for line in await ledger(pool, kind=EntryKind.LOST)] == [60_000]
        assert [line.duration_ms for line in await ledger(pool, kind=EntryKind.FAILED_START)] == [60_000]
        assert await ledger(pool, kind=EntryKind.WORK) == []

    run(story)


def test_the_chain_goes_on_over_a_restart_and_one_altered_byte_breaks_it() -> None:
    """A1: numbers, balances and hashes follow from one line to the next, also when another process goes on."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        for number in range(5):
            await pool.publish(ended(f"a{number}", use(1_000 * (number + 1))))
        await pool.pass_s(2)
        await pool.stop("billing")
        for number in range(5):
            await pool.publish(ended(f"b{number}", use(500)))
        await pool.start("billing")
        await pool.pass_s(3)
        lines = [line.model_dump(mode="json") for line in await ledger(pool)]
        assert len(lines) == 30
        assert first_break(lines) is None
        lines[7]["node"] = "n2"
        assert first_break(lines) == 8

    run(story)


def test_a_second_billing_process_takes_over_without_charging_twice() -> None:
    """While two processes share the work and one leaves, every entry is made exactly once."""

    async def story(pool: Pool) -> None:
        first = await pool.start("billing")
        await pool.start("billing")
        for number in range(40):
            await pool.publish(ended(f"t{number}", use(1_000), queue=f"q{number % 7}"))
            if number == 20:
                await first.stop()
        await pool.pass_s(12)
        lines = await ledger(pool, kind=EntryKind.WORK)
        assert sorted(line.entry for line in lines) == sorted(f"default/t{n}/1/0/work" for n in range(40))
        for queue in range(7):
            assert first_break([line.model_dump(mode="json") for line in await ledger(pool, queue=f"q{queue}")]) is None

    run(story)


def test_a_ledger_that_lost_its_ids_takes_them_again_and_charges_once() -> None:
    """Whoever took the ids in between shuts it out in the middle of a transaction; it reads its state anew, goes on."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        await pool.publish(ended("t1", use(1_000)))
        await pool.pass_s(2)
        for partition in range(streams.USAGE.partitions):
            producer = pool.runtime("other").transport.producer(
                client_id="other", transactional_id=f"evenflow.billing.{partition}"
            )
            await producer.start()
            await producer.stop()
        await pool.publish(ended("t2", use(1_000)))
        await pool.pass_s(5)
        assert [line.task for line in await ledger(pool, kind=EntryKind.WORK)] == ["t1", "t2"]
        lines = [line.model_dump(mode="json") for line in await ledger(pool, queue="q")]
        assert first_break(lines) is None

    run(story)


def test_a_crossing_is_settled_when_both_its_halves_are_known() -> None:
    """The transfer and the work may be metered in any order; the settled facts stand beside the prediction."""
    numbers: dict[str, Any] = {
        "reads": 1,
        "keep_copy": False,
        "bandwidth_bits": 10**9,
        "confidence_ppm": 10**6,
        "transfer_in_ms": 8_000,
        "stay_wait_ms": 100_000,
        "stay_run_ms": 60_000,
        "cross_wait_ms": 0,
        "cross_run_ms": 60_000,
        "margin_ppm": 100_000,
        "gain_ms": 92_000,
        "stay_cost_micro": 70_000,
    }
    terms = CrossingTerms(dataset="d", from_site="east", to_site="west", bytes=10**9, taken=True, **numbers)
    moved = TransferFinished(
        transfer="x",
        dataset="d",
        from_site="east",
        to_site="west",
        tenant="default",
        task="t",
        attempt=1,
        member=0,
        queue="q",
        node="n1",
        bytes=10**9,
        price_micro=20_000,
        counted_bytes=10**9,
        took_ms=9_000,
    )

    for work_first in (True, False):

        async def story(pool: Pool, *, first: bool = work_first) -> None:
            await pool.start("billing")
            facts = [ended("t", use(61_000, crossing=terms)), Fact(streams.TRANSFERS, moved)]
            for fact in facts if first else reversed(facts):
                await pool.publish(fact)
                await pool.pass_s(2)
            settled = await pool.bodies(streams.BILLING, CrossingSettled)
            assert [(s.bytes, s.transfer_in_ms, s.run_ms, s.gain_ms) for s in settled] == [
                (10**9, 9_000, 61_000, 90_000)
            ]
            assert settled[0].cost_micro == 20_000 + 67_778
            assert [line.amount_micro for line in await ledger(pool, kind=EntryKind.TRANSFER)] == [20_000]

        run(story)


def test_unreadable_usage_is_parked_and_the_partition_goes_on() -> None:
    """One bad record on the usage stream holds nobody up."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        await pool.publish_raw(streams.USAGE, b"q", b"\xff", [("ce_type", b"usage.measured")])
        await pool.publish(ended("t1", use(1_000)))
        await pool.pass_s(2)
        assert len(await ledger(pool, kind=EntryKind.WORK)) == 1
        assert len(await pool.dead_letters(streams.USAGE)) == 1

    run(story)


def reclaimed(stop_ms: int, *, leftover: bool = False) -> Fact:
    fields: dict[str, Any] = {"tenant": "default", "task": "t1", "attempt": 1, "generation": 1, "member": 0, "epoch": 1}
    outcome = Outcome(ended_as="stopped", stop_ms=stop_ms)
    held = {"device_milli": 1000, "cpu_milli": 2000, "price_per_hour_micro": 4_000_000, "site": "east"}
    body = AttemptReclaimed(node="n1", queue="q", at_ms=0, outcome=outcome, leftover=leftover, **fields, **held)
    return Fact(streams.RUNS, body)


def test_stopping_is_charged_by_the_policys_share_for_the_time_until_proven_free() -> None:
    """By default it costs nothing; a policy that charges it does so for the whole time, leftovers included, once."""

    async def story(pool: Pool) -> None:
        document = {"name": "default", "billing": {"charge": {"stop": 0.5}}}
        published = DocumentPublished(kind="policy", name="default", version=1, document=document)
        await pool.publish(Fact(streams.POLICIES, published))
        await pool.start("billing")
        await pool.publish(reclaimed(1_000, leftover=True))
        await pool.publish(reclaimed(9_000), reclaimed(9_000))
        await pool.pass_s(2)
        lines = await ledger(pool, kind=EntryKind.STOP)
        assert [(one.duration_ms, one.device_milli_ms, one.amount_micro, one.site) for one in lines] == [
            (9_000, 9_000_000, 5_000, "east"),
        ]

    run(story)


def test_a_rebuilt_history_skips_nothing_and_holds_a_bounded_part_in_memory(monkeypatch: Any) -> None:
    """With more entries on the log than may wait, and the store away at first, every entry becomes a document."""
    monkeypatch.setattr(stores, "WAITING_MAX", 5)
    monkeypatch.setattr(follower, "RECORDS_MAX", 4)
    held: list[int] = []
    apply = stores.LedgerViews.apply

    def noted(views: stores.LedgerViews, received: Any) -> None:
        apply(views, received)
        held.append(views.waiting_count)

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        await pool.publish(*(ended(f"t{number}", use(3_600_000)) for number in range(20)))
        await pool.pass_s(3)
        lines = await ledger(pool)
        await pool.stop("billing")
        pool.documents.wipe()
        pool.documents.faults.down()
        monkeypatch.setattr(stores.LedgerViews, "apply", noted)
        await pool.start("billing")
        await pool.publish(ended("late", use(3_600_000)))
        await pool.pass_s(5)
        assert len(await ledger(pool)) > len(lines)
        assert len(held) < len(lines)
        pool.documents.faults.up()
        await pool.pass_s(10)
        wanted = {line.entry.replace("/", ":") for line in await ledger(pool)}
        kept = [await pool.documents.get(stores.LEDGER, name) for name in sorted(wanted)]
        assert len(wanted) == 63
        assert None not in kept
        assert max(held) <= 5 - 1 + 4

    run(story)


def test_figures_beyond_what_a_balance_holds_are_parked_and_the_ledger_goes_on() -> None:
    """Proves that one impossible use of a queue costs a dead letter, not the ledger: entries behind it are made."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        huge = {"device_milli": 2**53, "duration_ms": 2**53, "price_per_hour_micro": 2**53}
        for task, more in (("huge", huge), ("good", {})):
            entry = f"default/{task}/1/0/work"
            usage = UsageMeasured(
                entry=entry, kind=EntryKind.WORK, tenant="default", task=task, attempt=1, member=0, queue="q",
                node="n1", site="east", at_ms=1, **{"duration_ms": 1_000, "device_milli": 1_000, **more},
            )  # fmt: skip
            await pool.publish(Fact(streams.USAGE, usage, id=entry))
        await pool.pass_s(3)
        assert [line.task for line in await ledger(pool)] == ["good"]
        letters = await pool.dead_letters(streams.USAGE)
        assert [b"refused: " in dict(letter.headers)["x-dlq-error"] for letter in letters] == [True]

    run(story)


def test_entries_are_forgotten_after_their_retention_and_their_charges_stay() -> None:
    """Proves that the ledger's memory is bounded by time, oldest first, and that a repeat within it charges nothing."""

    async def story(pool: Pool) -> None:
        await pool.start("billing", entry_retention_ms=60_000)
        await pool.publish(ended("old", use(1_000)))
        await pool.pass_s(3)
        await pool.publish(ended("old", use(1_000)))
        await pool.pass_s(100)
        await pool.publish(ended("new", use(1_000)))
        await pool.pass_s(3)
        kept: dict[bytes | None, bytes | None] = {}
        for record in await pool.records(streams.BILLING_STATE.name):
            kept[record.key] = record.value
        entries = [(key or b"").decode() for key, value in kept.items() if value and (key or b"").startswith(b"entry/")]
        assert {entry.split("/")[2] for entry in entries} == {"new"}
        assert len(await ledger(pool, task="old", kind=EntryKind.WORK)) == 1

    run(story)


def test_a_row_that_no_ledger_wrote_ends_the_ledger_instead_of_guessing_money() -> None:
    """Proves what a readable row of a wrong form is: a reason to stop, with a message that names it."""
    assert checked("queue/q", {"number": 1, "balance_micro": 5, "hash": "h"})
    assert checked("entry/x", {}) == {}
    for key, row in (("offset", {"next": "7"}), ("queue/q", {"number": 1}), ("entry/x", {"at_ms": None})):
        with pytest.raises(ValueError, match="is "):
            checked(key, row)


def test_a_history_that_its_store_lost_is_written_again_while_serving() -> None:
    """Nothing is restarted: the loss is noticed, the topic is read again, and every entry is a document again."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        await pool.publish(*(ended(f"t{number}", use(3_600_000)) for number in range(20)))
        await pool.pass_s(10)
        names = sorted(line.entry.replace("/", ":") for line in await ledger(pool))
        await pool.documents.drop(stores.LEDGER)
        await pool.pass_s(10)
        assert names
        assert None not in [await pool.documents.get(stores.LEDGER, name) for name in names]

    run(story)
