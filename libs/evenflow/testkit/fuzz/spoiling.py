"""Ways to spoil a good record, one name each: the field, the bytes, the key or the headers.

Each takes hypothesis's `draw` and a draft, and changes the draft. `SPOILS` is the list; the figures of a run count
records by these names.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from evenflow.events.envelope import AVRO_CONTENT_TYPE
from evenflow.events.streams import MESSAGE_BYTES_MAX

Draw = Callable[[Any], Any]

_WRONG: Final = st.one_of(
    st.none(), st.booleans(), st.text(max_size=6), st.just([]), st.just({}), st.just([[]]), st.floats(), st.just("1e3"),
)  # fmt: skip
_NUMBERS: Final = st.sampled_from(
    [-1, -(2**63), 2**53 + 1, 2**63, 2**64, 10**40, 1e308, float("nan"), float("inf"), float("-inf"), -0.0, 0.5, 1e-12]
)
_CONTROLS: Final = st.sampled_from(["\x00", "\n", "\r", "\x1b[2J", "\x7f", "\u200b", "\u202e", "\ud800", "\ufeff"])
#: Latin letters and others that look the same.
LOOK_ALIKE: Final = str.maketrans("aceopxyti", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u03c4\u0456")
_DEEP: Final = (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, b"[" * 40_000, b'{"a":' * 300 + b"1" + b"}" * 300)


@dataclass(slots=True)
class Draft:
    """A record in the making. `value` overrides what `body` would be written as; `key` likewise."""

    kind: str
    body: Any
    headers: list[tuple[str, bytes | None]]
    key: bytes | None
    value: bytes | None = None
    empty: bool = False
    sign: bool = False
    how: str = "valid"
    other_kinds: tuple[str, ...] = field(default_factory=tuple)

    def written(self) -> bytes | None:
        """The value's bytes."""
        if self.empty or self.value is not None:
            return self.value
        return json.dumps(self.body).encode("utf-8", "surrogatepass")

    def set_header(self, name: str, value: bytes | None) -> None:
        """Change one header, or add it."""
        self.headers = [*(pair for pair in self.headers if pair[0] != name), (name, value)]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        found += _places(inner, (*path, step))
    return found


def _change(draw: Draw, draft: Draft, change: Callable[[Any], Any]) -> None:
    """Put `change(old)` at some place of the body."""
    places = _places(draft.body)
    if not places:
        draft.body = change(draft.body)
        return
    path = draw(st.sampled_from(places))
    draft.body = _replaced(draft.body, path, change)


def _replaced(value: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not path:
        return change(value)
    fresh: Any = dict(value) if isinstance(value, dict) else list(value)
    fresh[path[0]] = _replaced(value[path[0]], path[1:], change)
    return fresh


def wrong_type(draw: Draw, draft: Draft) -> None:
    """One field holds something of another kind."""
    _change(draw, draft, lambda _: draw(_WRONG))


def hostile_number(draw: Draw, draft: Draft) -> None:
    """One field is negative, huge, not whole, not a number or infinite."""
    _change(draw, draft, lambda _: draw(_NUMBERS))


def missing_field(draw: Draw, draft: Draft) -> None:
    """One field is not there."""
    if isinstance(draft.body, dict) and draft.body:
        gone = draw(st.sampled_from(sorted(draft.body)))
        draft.body = {name: value for name, value in draft.body.items() if name != gone}


def extra_field(draw: Draw, draft: Draft) -> None:
    """A field that nobody knows."""
    if isinstance(draft.body, dict):
        draft.body = {**draft.body, draw(st.text(min_size=1, max_size=8)): draw(_WRONG)}


def control_character(draw: Draw, draft: Draft) -> None:
    """A text with a control character, an invisible one or half of a pair."""
    _change(draw, draft, lambda old: f"{old}{draw(_CONTROLS)}")


def look_alike(draw: Draw, draft: Draft) -> None:
    """A text whose letters only look the same."""
    _change(draw, draft, lambda old: str(old).translate(LOOK_ALIKE))


def truncated(draw: Draw, draft: Draft) -> None:
    """The value stops somewhere."""
    whole = draft.written() or b"{}"
    draft.value = whole[: draw(st.integers(0, max(0, len(whole) - 1)))]


def noise(draw: Draw, draft: Draft) -> None:
    """Bytes of any kind."""
    draft.value = draw(st.binary(min_size=1, max_size=64))


def changed_bytes(draw: Draw, draft: Draft) -> None:
    """Some byte is another one, as a bad memory would have it."""
    whole = bytearray(draft.written() or b"{}")
    whole[draw(st.integers(0, len(whole) - 1))] = draw(st.integers(0, 255))
    draft.value = bytes(whole)


def other_encoding(draw: Draw, draft: Draft) -> None:
    """The text in an encoding that is not ours."""
    text = (draft.written() or b"{}").decode("utf-8", "replace")
    draft.value = text.encode(draw(st.sampled_from(["utf-16", "utf-32", "utf-8-sig", "utf-7"])), "replace")


def deep(draw: Draw, draft: Draft) -> None:
    """Nested deeper than any parser likes."""
    draft.value = draw(st.sampled_from(_DEEP))


def not_an_object(draw: Draw, draft: Draft) -> None:
    """JSON, but no object; or a field twice."""
    draft.value = draw(st.sampled_from([b"[]", b"null", b'"x"', b"5", b"NaN", b'{"task":"a","task":"b"}', b"{}", b" "]))


def large(draw: Draw, draft: Draft) -> None:
    """As large as the log takes, and larger."""
    size = draw(st.sampled_from([MESSAGE_BYTES_MAX // 2, MESSAGE_BYTES_MAX - 3_000, MESSAGE_BYTES_MAX + 1]))
    draft.value = b'{"note":"' + b"x" * size + b'"}'


def tombstone(_: Draw, draft: Draft) -> None:
    """No value at all, whether or not the topic takes that."""
    draft.value, draft.empty = None, True


def empty_value(_: Draw, draft: Draft) -> None:
    """A value of no bytes."""
    draft.value, draft.empty = b"", True


def as_avro(draw: Draw, draft: Draft) -> None:
    """Said to be Avro; with or without a frame of a schema id."""
    draft.set_header("content-type", AVRO_CONTENT_TYPE.encode())
    frame = draw(
        st.sampled_from([b"", b"\x00", b"\x00\x00\x00\x00\x01", b"\x00\x00\x00\x00\x07", b"\x00\xff\xff\xff\xff"])
    )
    draft.value = frame + draw(st.binary(max_size=64))


def wrong_key(draw: Draw, draft: Draft) -> None:
    """A key of something else, of other letters, or none."""
    draft.key = draw(
        st.sampled_from([None, b"", b"\xff\xfe", b"default/other", b"n2", b"/", b"a/b/c", b"k" * 5_000, b"\x00"])
        | st.binary(min_size=1, max_size=16)
    )


def header_without_value(draw: Draw, draft: Draft) -> None:
    """A header that is null."""
    draft.set_header(draw(st.sampled_from([*(name for name, _ in draft.headers), "x"])), None)


def header_not_text(draw: Draw, draft: Draft) -> None:
    """A header that is not UTF-8."""
    name = draw(st.sampled_from([*(name for name, _ in draft.headers), "x"]))
    draft.set_header(name, draw(st.sampled_from([b"\xff", b"\xc3\x28", b"\xed\xa0\x80"])))


def missing_header(draw: Draw, draft: Draft) -> None:
    """A header is not there."""
    gone = draw(st.sampled_from([name for name, _ in draft.headers]))
    draft.headers = [pair for pair in draft.headers if pair[0] != gone]


def wrong_header(draw: Draw, draft: Draft) -> None:
    """A header with another value."""
    name = draw(st.sampled_from([name for name, _ in draft.headers]))
    draft.set_header(name, draw(st.text(max_size=12)).encode())


def many_headers(draw: Draw, draft: Draft) -> None:
    """More headers, or longer ones, than are read."""
    if draw(st.booleans()):
        draft.headers = [*draft.headers, *((f"x{number}", b"") for number in range(100))]
    else:
        draft.set_header("x", b"a" * 10_000)


def unknown_major(draw: Draw, draft: Draft) -> None:
    """A major version of the body that nobody knows."""
    draft.set_header("ce_dataschema", f"urn:evenflow:{draft.kind}:{draw(st.integers(2, 99))}".encode())


def wrong_time(draw: Draw, draft: Draft) -> None:
    """A time that is none, or very far away."""
    times = ["yesterday", "", "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z", "2026-13-01T00:00:00Z", "1e9"]
    draft.set_header("ce_time", draw(st.sampled_from(times)).encode())


def wrong_stamp(draw: Draw, draft: Draft) -> None:
    """An agent's stamp that can't be, or that is signed by nobody."""
    draft.sign = False
    numbers = st.sampled_from(["-1", "x", "", "9" * 19, "9" * 18, "1.5", "\u0661", "0"])
    draft.set_header("node", draw(st.sampled_from(["n1", "n2", "nobody", ""])).encode())
    draft.set_header("session", draw(st.text(max_size=8)).encode())
    for name in ("sequence", "attempt", "member", "epoch"):
        if draw(st.booleans()):
            draft.set_header(name, draw(numbers).encode())
    draft.set_header("signature", draw(st.sampled_from(["", "00" * 64, "zz", "0"])).encode())


def other_type(draw: Draw, draft: Draft) -> None:
    """A type of another stream, or one that nobody knows."""
    kind = draw(st.sampled_from([*draft.other_kinds, "task.dreamt", "", "TASK.SUBMITTED", "task.submitted\x00"]))
    draft.set_header("ce_type", kind.encode())
    if draw(st.booleans()):
        draft.set_header("ce_dataschema", f"urn:evenflow:{kind}:1".encode())


def used_id(draw: Draw, draft: Draft) -> None:
    """An id that other records have too, with this body."""
    draft.set_header("ce_id", draw(st.sampled_from([b"e-used-1", b"e-used-2", b"e" * 300])))


#: Every way, by its name. The commonest stand more than once in `WEIGHTED`.
SPOILS: Final[tuple[Callable[[Draw, Draft], None], ...]] = (
    wrong_type, hostile_number, missing_field, extra_field, control_character, look_alike, truncated, noise,
    changed_bytes, other_encoding, deep, not_an_object, large, tombstone, empty_value, as_avro, wrong_key,
    header_without_value, header_not_text, missing_header, wrong_header, many_headers, unknown_major, wrong_time,
    wrong_stamp, other_type, used_id,
)  # fmt: skip
_OFTEN: Final = (wrong_type, hostile_number, missing_field, used_id)
_SELDOM: Final = (large, deep)
WEIGHTED: Final = (
    *(spoil for spoil in SPOILS if spoil not in _SELDOM for _ in range(4)),
    *(spoil for spoil in _OFTEN for _ in range(8)),
    *_SELDOM,
)
