"""Dead letters: what could not be handled, why, and putting it back or setting it aside.

A letter is listed by its place on `<topic>.dlq` and belongs to the record it was made of. Several services may park the
same record: such letters are listed once. What became of a letter is a line of the audit, read back by the fold.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from aiokafka.errors import TopicAuthorizationFailedError

from evenflow.console.access.caller import Caller
from evenflow.console.log_reader import LogReader
from evenflow.console.problems import Problem, absent
from evenflow.console.service import Console
from evenflow.core.errors import Unavailable
from evenflow.events.streams import BY_NAME, STREAMS, dead_letters_of
from evenflow.platform.broker import dead_letters as parking
from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.broker.ports import Record

RETRY_OF: Final = "x-dlq-retry-of"
SCANNED_MAX: Final = 5_000
SHOWN_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Letter:
    """One parked record. `topic` is where the record came from; `offset` is the letter's place on `<topic>.dlq`."""

    topic: str
    offset: int
    origin: str
    error: str
    service: str
    at_ms: int
    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def row(self, state: str) -> dict[str, Any]:
        """One line of a list."""
        code, _, problem = self.error.partition(": ")
        return {
            "topic": self.topic,
            "partition": 0,
            "offset": self.offset,
            "origin": self.origin,
            "code": code,
            "problem": problem,
            "service": self.service,
            "at_ms": self.at_ms,
            "key": self.key.decode("utf-8", "replace")[:512],
            "size_bytes": len(self.value or b""),
            "state": state,
        }

    def whole(self, state: str) -> dict[str, Any]:
        """The letter with its bytes and headers, cut where they are very long."""
        value = self.value or b""
        shown = self.row(state)
        try:
            shown["text"] = value[:SHOWN_BYTES].decode()
        except UnicodeDecodeError:
            shown["text"] = None
        shown["value_base64"] = base64.b64encode(value[:SHOWN_BYTES]).decode()
        shown["value_cut"] = len(value) > SHOWN_BYTES
        shown["headers"] = [
            {"name": name, "value": None if raw is None else raw.decode("utf-8", "replace")}
            for name, raw in self.headers
        ]
        return shown


def read_letter(topic: str, record: Record) -> Letter:
    """A record of `<topic>.dlq` as a letter; whatever is missing is empty."""
    found = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    at = found.get(parking.AT_MS, "")
    return Letter(
        topic=topic,
        offset=record.offset,
        origin=found.get(parking.ORIGIN, f"{topic}.dlq/0/{record.offset}"),
        error=found.get(parking.ERROR, "unknown: no reason was noted"),
        service=found.get(parking.SERVICE, ""),
        at_ms=int(at) if at.isascii() and at.isdigit() and len(at) < 19 else record.timestamp,
        key=record.key or b"",
        value=record.value,
        headers=_original_headers(found.get(parking.HEADERS, "")),
    )


def _original_headers(text: str) -> tuple[tuple[str, bytes | None], ...]:
    pairs: list[tuple[str, bytes | None]] = []
    for pair in text.split(","):
        name, equals, value = pair.partition("=")
        if not equals:
            continue
        try:
            restored = bytes.fromhex(name).decode("utf-8", "surrogatepass")
            pairs.append((restored, None if value == "-" else bytes.fromhex(value)))
        except ValueError:
            continue
    return tuple(pairs)


class Letters:
    """Reads and answers dead letters."""

    def __init__(self, console: Console, reader: LogReader, outlet: Outlet) -> None:
        self._console = console
        self._reader = reader
        self._outlet = outlet

    async def listed(self, *, topic: str, state: str, limit: int) -> list[dict[str, Any]]:
        """Letters, newest first, one for each parked record. Raises Problem for an unknown topic."""
        topics = [topic_of(topic)] if topic else [stream.name for stream in STREAMS if stream.dead_letters]
        bounds = await self._reader.bounds([dead_letters_of(name) for name in topics])
        found: dict[str, dict[str, Any]] = {}
        for name in topics:
            first, end = bounds[dead_letters_of(name)]
            if first >= end:
                continue
            start = max(first, end - SCANNED_MAX)
            for record in await self._reader.run(dead_letters_of(name), 0, start, SCANNED_MAX):
                letter = read_letter(name, record)
                row = found.get(letter.origin)
                if row is None:
                    found[letter.origin] = {**letter.row(self.state(letter)), "copies": 1}
                else:
                    row["copies"] += 1
        rows = [row for row in found.values() if state in ("all", row["state"])]
        return sorted(rows, key=lambda row: (-row["at_ms"], row["topic"], -row["offset"]))[:limit]

    async def one(self, topic: str, partition: int, offset: int) -> Letter:
        """A letter by its place. Raises Problem when there is none."""
        name = topic_of(topic)
        record = await self._reader.one(dead_letters_of(name), 0, offset) if partition == 0 else None
        if record is None:
            raise absent("dead letter", f"{name}/{partition}/{offset}", "evenflow dlq list shows those that are there.")
        return read_letter(name, record)

    def state(self, letter: Letter) -> str:
        """open, retry or drop."""
        done = self._console.board.papers.letters.get(letter.origin, "")
        return {"": "open", "retry": "retried", "drop": "dropped"}[done]

    async def retry(self, letter: Letter, *, who: Caller) -> None:
        """Put a record back on its topic: same key, bytes and headers, and a header that names what it repeats."""
        headers = [pair for pair in letter.headers if pair[0] != RETRY_OF]
        again = Encoded(
            letter.topic, letter.key, letter.value, _sendable([*headers, (RETRY_OF, letter.origin.encode())])
        )
        try:
            await self._outlet.send([again])
        except Unavailable as error:
            if not isinstance(error.__cause__, TopicAuthorizationFailedError):
                raise
            raise Problem(
                403,
                "not-permitted",
                f"the log does not let the console write to {letter.topic}",
                way_out="Permit it for the time of the retry (docs/security.md), or send it again from its source.",
            ) from error
        await self._closed(letter, "retry", who)

    async def drop(self, letter: Letter, *, reason: str, who: Caller) -> None:
        """Set a letter aside; the log keeps it until it expires."""
        await self._closed(letter, "drop", who, reason)

    async def _closed(self, letter: Letter, action: str, who: Caller, reason: str = "") -> None:
        await self._console.publish(
            action=f"dead-letter.{action}",
            subject=letter.origin,
            parameters={"topic": letter.topic, "offset": letter.offset},
            who=who,
            reason=reason,
        )
        letters = self._console.board.papers.letters
        await self._console.seen(lambda: letters.get(letter.origin) == action, 2_000)


def _sendable(headers: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes]]:
    """Raises Problem for what the log's client can't carry any more."""
    for name, value in headers:
        if value is None:
            raise Problem(
                409,
                "not-sendable",
                f"the header {name[:60]!a} has no value and can't be sent again as it was",
                way_out="Send the record again from its source, then drop this letter.",
            )
    return [(name, value) for name, value in headers if value is not None]


def topic_of(name: str) -> str:
    """A stream's topic by its own name, its dead letters' name, or the part between. Raises Problem."""
    for candidate in (name, name.removesuffix(".dlq"), f"evenflow.{name}.v1"):
        if candidate in BY_NAME and BY_NAME[candidate].dead_letters:
            return candidate
    known = ", ".join(stream.name for stream in STREAMS if stream.dead_letters)
    raise Problem(
        404, "not-found", f"no stream {name[:80]!a} has dead letters", path="topic", way_out=f"One of {known}."
    )
