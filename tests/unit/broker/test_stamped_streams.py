"""What is said in an agent's name without its stamp is applied by nobody: the streams of agents alone."""

from __future__ import annotations

import pytest

from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptReclaimed, Outcome
from evenflow.events.contracts.billing import ChargeRecorded
from evenflow.events.envelope import AgentStamp
from evenflow.platform.broker.codec import Bad, Encoded, Fact, Received, decode, encode
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.testkit.examples import examples
from evenflow.testkit.pool import Pool, run


def read(stream: streams.Stream, record: Encoded) -> Received | Bad:
    return decode(LogRecord(record.topic, 0, 0, 0, record.key, record.value, record.headers), stream)


@pytest.mark.parametrize("stream", [one for one in streams.STREAMS if one.stamped], ids=lambda one: one.name)
def test_a_record_without_a_stamp_is_no_agents_word(stream):
    """Proves for every type of these streams: with a stamp it is read, without one it is parked as unsigned."""
    for kind in stream.carries:
        body = examples()[kind]
        plain = encode(Fact(stream, body), source="somebody", now_ms=1, new_id="e")
        found = read(stream, plain)
        assert isinstance(found, Bad)
        assert found.code == "unsigned"
        stamped = encode(Fact(stream, body, stamp=AgentStamp("n1", "s1", 1)), source="n1", now_ms=1, new_id="e")
        assert isinstance(read(stream, stamped), Received)


def test_an_unsigned_receipt_charges_nobody():
    """Proves that the ledger believes no more than the decider does: nothing is metered, and the record is parked."""

    async def story(pool: Pool) -> None:
        await pool.start("billing")
        reclaimed = AttemptReclaimed(
            tenant="default", task="t1", attempt=1, generation=1, member=0, epoch=1, node="n1", queue="q", at_ms=1,
            outcome=Outcome(ended_as="stopped", stop_ms=60_000), device_milli=1_000, price_per_hour_micro=4_000_000,
        )  # fmt: skip
        plain = encode(Fact(streams.RUNS, reclaimed), source="somebody", now_ms=1, new_id="e")
        await pool.publish_raw(streams.RUNS, plain.key, plain.value, plain.headers)
        await pool.pass_s(3)
        assert await pool.bodies(streams.BILLING, ChargeRecorded) == []
        assert len(await pool.dead_letters(streams.RUNS)) == 1

    run(story)
