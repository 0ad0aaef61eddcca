"""What happens to a record that can't be handled: retried, or parked with its exact bytes and origin."""

from __future__ import annotations

import json

import pytest

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.events import streams
from evenflow.events.contracts.console import NodeCordonRequested
from evenflow.events.envelope import Envelope, dataschema_of, derived_id, from_headers, time_text, to_headers
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.service import EventService
from evenflow.testkit.pool import Pool, run

GOOD = json.dumps({"node": "n1"}).encode()


def headers(**changed: bytes | None) -> list[tuple[str, bytes]]:
    kind = "node.cordon-requested"
    envelope = Envelope("e1", kind, "test", "n1", 0, dataschema_of(kind, 1), "c1")
    pairs = dict(to_headers(envelope))
    pairs.update({name: value for name, value in changed.items() if value is not None})
    return [(name, value) for name, value in pairs.items() if changed.get(name, b"") is not None]


BAD = {
    "random bytes": (b"n1", b"\x00\xff\xfe", headers()),
    "another schema": (b"n1", b'{"colour":"red"}', headers()),
    "nested deep": (b"n1", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, headers()),
    "unknown major": (b"n1", GOOD, headers(ce_dataschema=b"urn:evenflow:node.cordon-requested:2")),
    "empty value": (b"n1", b"", headers()),
    "key of another": (b"n2", GOOD, headers()),
    "a huge number": (b"n1", b'{"node":"n1","reason":' + b"9" * 100_000 + b"}", headers()),
    "no type": (b"n1", GOOD, headers(ce_type=None)),
    "header not UTF-8": (b"n1", GOOD, headers(ce_source=b"\xff")),
    "key not UTF-8": (b"\xff", GOOD, headers()),
    "no key": (b"", GOOD, headers()),
    "type of another stream": (b"n1", GOOD, headers(ce_type=b"task.ended", ce_dataschema=b"urn:evenflow:task.ended:1")),
    "id with a slash": (b"../x", b'{"node":"../x"}', headers()),
    "look-alike letter": ("nоde".encode(), '{"node":"nоde"}'.encode(), headers()),  # noqa: RUF001  a Cyrillic letter, on purpose
    "wrong type": (b"n1", b'{"node":1}', headers()),
    "a list": (b"n1", b"[]", headers()),
}


async def listening(pool: Pool, seen: list[str], failing: list[Exception] | None = None) -> EventService:
    """A service with one handler that notes what it was given and raises what stands first in `failing`."""
    host = EventService(pool.runtime("listener"))

    @host.inlet.on(streams.REQUESTS)
    async def on_request(received: Received) -> None:
        seen.append(received.key)
        if failing:
            raise failing.pop(0)

    await host.start()
    return host


@pytest.mark.parametrize("name", list(BAD))
def test_a_bad_record_is_parked_with_its_origin_and_the_next_one_is_handled(name: str) -> None:
    """R45: one record of each kind; the good ones before and behind it are applied, nothing is lost."""

    async def story(pool: Pool) -> None:
        seen: list[str] = []
        host = await listening(pool, seen)
        key, value, pairs = BAD[name]
        await pool.publish_raw(streams.REQUESTS, b"n1", GOOD, headers())
        await pool.publish_raw(streams.REQUESTS, key, value, pairs)
        await pool.publish_raw(streams.REQUESTS, b"n1", GOOD, headers(ce_id=b"e2"))
        await pool.pass_s(1)
        letters = await pool.dead_letters(streams.REQUESTS)
        assert len(letters) == 1
        noted = dict(letters[0].headers)
        assert (letters[0].value or b"") == value
        assert noted["x-dlq-origin"].decode().startswith("evenflow.requests.v1/")
        assert noted["x-dlq-error"]
        assert seen == ["n1", "n1"]
        await host.stop()
        again = await listening(pool, seen)
        await pool.pass_s(1)
        assert len(await pool.dead_letters(streams.REQUESTS)) == 1
        await again.stop()

    run(story)


def test_a_failing_store_is_retried_and_the_record_applied_once_it_is_back() -> None:
    """A retriable error parks nothing."""

    async def story(pool: Pool) -> None:
        seen: list[str] = []
        host = await listening(pool, seen, [Unavailable("away"), Unavailable("away"), OSError("away")])
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="n1")))
        await pool.pass_s(10)
        assert seen == ["n1"] * 4
        assert await pool.dead_letters(streams.REQUESTS) == []
        await host.stop()

    run(story)


def test_a_store_that_stays_away_holds_the_record_until_it_is_back() -> None:
    """When the retries are used up nothing is committed: the log gives the record again, it is never parked."""

    async def story(pool: Pool) -> None:
        seen: list[str] = []
        host = await listening(pool, seen, [Unavailable("away") for _ in range(20)])
        await pool.publish(Fact(streams.REQUESTS, NodeCordonRequested(node="n1")))
        await pool.pass_s(120)
        assert len(seen) == 21
        assert await pool.dead_letters(streams.REQUESTS) == []
        await host.stop()

    run(story)


def test_a_handler_that_refuses_for_good_parks_only_its_own_record() -> None:
    """In a batch only the record that fails is parked; the others are applied."""

    async def story(pool: Pool) -> None:
        applied: list[str] = []
        host = EventService(pool.runtime("listener"))

        @host.inlet.on_batch(streams.REQUESTS)
        async def on_requests(events: list[Received]) -> None:
            if any(one.key == "n3" for one in events):
                raise FieldRefused("node", "is not welcome")
            applied.extend(one.key for one in events)

        await pool.publish(*(Fact(streams.REQUESTS, NodeCordonRequested(node=f"n{n}")) for n in range(6)))
        await host.start()
        await pool.pass_s(2)
        assert sorted(applied) == ["n0", "n1", "n2", "n4", "n5"]
        assert [letter.key for letter in await pool.dead_letters(streams.REQUESTS)] == [b"n3"]
        await host.stop()

    run(story)


def test_an_envelope_survives_its_headers_and_a_derived_id_depends_on_every_part() -> None:
    """Reading what was written gives the same envelope; ids of different facts differ."""
    kind = "node.cordon-requested"
    envelope = Envelope("e1", kind, "test", "n1", 1_767_225_600_123, dataschema_of(kind, 1), "c1", "d1", "acme", "00-1")
    assert from_headers(to_headers(envelope)) == envelope
    assert time_text(1_767_225_600_123) == "2026-01-01T00:00:00.123Z"
    assert len({derived_id("a", "bc"), derived_id("ab", "c"), derived_id("a", "b", "c")}) == 3
