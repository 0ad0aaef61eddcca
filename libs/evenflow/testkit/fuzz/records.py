"""Generated records of every topic: what the contracts allow, and the same spoiled in one way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast

from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from evenflow.core.errors import EvenflowError
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.envelope import Envelope, dataschema_of, to_headers
from evenflow.events.keys import key_of
from evenflow.events.schema.document_schema import document_schema
from evenflow.events.schema.json_schema import json_schema
from evenflow.events.streams import (
    BILLING_STATE,
    BY_NAME,
    PLACEMENT_LEADER,
    PLACEMENT_STATE,
    PROBES,
    RUNS,
    TELEMETRY,
    TRANSFERS,
    Stream,
    topics,
)
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.codec import Bad, decode, read_body
from evenflow.platform.broker.embedded.records import LogRecord
from evenflow.platform.broker.ports import Record
from evenflow.sim.scenario.file import START_MS
from evenflow.testkit.fuzz.shapes import Shapes, Strategy
from evenflow.testkit.fuzz.spoiling import WEIGHTED, Draft
from evenflow.testkit.fuzz.surroundings import KNOWN

#: Of ten records so many are spoiled.
SPOILED_OF_TEN: Final = 6
SIGNED_OF_TEN: Final = 8
#: Letters of dead letters are few beside the records of the topics themselves.
SHARE_OF_LETTERS: Final = 0.25
#: What a service remembers in its own name. A readable record there is believed, and one of a wrong form ends whoever
#: would build on it, on purpose; so only what can't be read is thrown there.
OWN_STATE: Final = (PLACEMENT_STATE, BILLING_STATE, PLACEMENT_LEADER)
SPOKEN_BY_AGENTS: Final = (RUNS, TELEMETRY, PROBES, TRANSFERS)
_STATE_KEYS: Final = ("task/default/t1", "node/n1", "pool/default", "alert/node.lost/n1", "queue/q", "offset", "x", "/")
_DOCUMENTS: Final = ("policy", "queue", "site", "link")


@dataclass(frozen=True, slots=True)
class Thrown:
    """One record to throw at a topic. `sign`: stamped and signed as its node would; `how` says what was done to it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    how: str
    sign: bool = False


@cache
def _bodies(kind: str) -> Strategy:
    """Bodies of one type, with real documents where a contract only says that there is one."""
    if kind not in CONTRACTS:  # on the closed list, not yet written by anybody
        return st.dictionaries(st.sampled_from(["node", "from_s", "nodes"]), st.integers() | st.text(max_size=8))
    schema = json_schema(CONTRACTS[kind])
    made = Shapes(schema, KNOWN).of(schema)
    inside: dict[str, Strategy] = {}
    if kind == EventType.NODE_ANNOUNCED:
        inside["document"] = _document("node")
    elif kind == EventType.DATASET_ADD_REQUESTED:
        inside["document"] = _document("dataset")
    elif kind == EventType.DOCUMENT_PUBLISHED:
        inside["document"] = st.one_of([_document(name) for name in _DOCUMENTS])
    elif kind in (EventType.NODE_REGISTERED, EventType.NODE_CHANGED):
        inside["document"] = _document("node")
    elif kind == EventType.ATTEMPT_DESIRED:
        inside["specification"] = _document("task")
    if not inside:
        return made
    return st.builds(lambda body, more: {**body, **more}, made, st.fixed_dictionaries(inside))


@cache
def _document(name: str) -> Strategy:
    schema = document_schema(name)
    return Shapes(schema, KNOWN).of(schema)


def _key(kind: str, body: Any, value: bytes | None, draw: Callable[[Any], Any]) -> bytes:
    if kind == EventType.TASK_SUBMITTED:
        named = body if isinstance(body, dict) else {}
        return f"{named.get('tenant', 'default')}/{named.get('id', 'k')}".encode("utf-8", "surrogatepass")
    if kind in CONTRACTS:
        try:
            found = key_of(read_body(kind, value or b"{}"))
        except EvenflowError:
            found = None
        if found:
            return found.encode()
    return str(draw(st.sampled_from(_STATE_KEYS))).encode()


@st.composite
def record(draw: Callable[[Any], Any], stream: Stream, others: tuple[str, ...]) -> Thrown:
    """One record of a stream."""
    kinds = stream.carries or (str(EventType.STATE_RECORDED),)
    kind = draw(st.sampled_from(kinds))
    body = draw(_bodies(kind))
    number = draw(st.integers(0, 2**32))
    envelope = Envelope(
        f"e{number:x}", kind, "fuzz", "k", START_MS, dataschema_of(kind, 1), f"c{number:x}", tenant="default"
    )
    draft = Draft(kind, body, [*to_headers(envelope)], None, other_kinds=others)
    draft.key = _key(kind, body, draft.written(), draw)
    draft.sign = stream in SPOKEN_BY_AGENTS and draw(st.integers(0, 9)) < SIGNED_OF_TEN
    if draw(st.integers(0, 9)) < SPOILED_OF_TEN:
        spoil = draw(st.sampled_from(WEIGHTED))
        spoil(draw, draft)
        draft.how = spoil.__name__.replace("_", " ")
    return Thrown(stream.name, draft.key, draft.written(), tuple(draft.headers), draft.how, draft.sign)


def as_record(one: Thrown) -> Record:
    """A record as its reader would get it."""
    return LogRecord(one.topic, 0, 0, 0, one.key, one.value, cast("list[tuple[str, bytes]]", list(one.headers)))


def records_of(stream: Stream, count: int, seed_number: int) -> list[Thrown]:
    """So many records of one stream, the same for the same seed."""
    others = tuple(kind for kind in sorted(CONTRACTS) if kind not in stream.carries)
    made: list[Thrown] = []

    @seed(f"{seed_number}/{stream.name}")
    @settings(
        max_examples=count, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(record(stream, others))
    def collect(one: Thrown) -> None:
        assume(stream not in OWN_STATE or isinstance(decode(as_record(one), stream), Bad))
        made.append(one)

    collect()
    return made[:count]


def every_record(count: int, seed_number: int) -> list[Thrown]:
    """At least `count` records, spread evenly over all topics and mixed, so that every part of them has every topic."""
    weights = {stream.name: 1.0 if stream.name in BY_NAME else SHARE_OF_LETTERS for stream in topics()}
    each = count / sum(weights.values())
    by_topic = [records_of(stream, math.ceil(each * weights[stream.name]), seed_number) for stream in topics()]
    longest = max(len(one) for one in by_topic)
    return [
        one[index * len(one) // longest] for index in range(longest) for one in by_topic if _falls(index, one, longest)
    ]


def _falls(index: int, records: Sequence[Thrown], longest: int) -> bool:
    """Whether a topic with fewer records has its turn: its records are spread over the whole."""
    return index * len(records) // longest != (index - 1) * len(records) // longest
