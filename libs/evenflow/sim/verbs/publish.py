"""`publish`: anything at all, straight onto the log."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading, Values
from evenflow.sim.stage import Stage
from evenflow.sim.verbs.verb import Verb

#: Stands for the number of the turn.
NUMBER: Final = "{i}"
#: Turns of one piece: a value may be far larger than any log takes, not without bound.
PIECES_MAX: Final = 100_000_000


def _read_bytes(value: object, path: str, _reading: Reading) -> bytes:
    if not isinstance(value, str):
        raise FieldRefused(path, "must be base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FieldRefused(path, f"is not base64: {error}") from None


def _check(values: Values, path: str) -> None:
    if len({"value", "bytes_base64", "pieces"} & values.keys()) > 1:
        raise FieldRefused(path, "takes one of value, bytes_base64, pieces")


_PIECE: Final = Form(
    "piece",
    "a text and how often",
    (
        Field("text", kinds.TEXT, "the text; {i} in it is the number of the turn, from 1", required=True),
        Field("times", kinds.integer(1, PIECES_MAX), "how often", default=1),
    ),
)


_FORM: Final = Form(
    "publish",
    "one record",
    (
        Field("topic", kinds.TEXT, "the topic", required=True),
        Field("key", kinds.TEXT, "the record's key; none unless said"),
        Field("value", kinds.ANYTHING, "a value, sent as JSON"),
        Field("bytes_base64", Kind("base64", _read_bytes), "exact bytes; an empty text is an empty value"),
        Field("pieces", kinds.list_of(_PIECE.kind(), least=1), "texts one after the other are the value"),
        Field("headers", kinds.map_of(kinds.TEXT), "headers", default={}),
    ),
    check=_check,
)


def text_of(piece: Values) -> str:
    """The text of one piece, so often as it says."""
    text, times = piece["text"], piece["times"]
    if NUMBER not in text:
        return str(text * times)
    return "".join(text.replace(NUMBER, str(turn)) for turn in range(1, times + 1))


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    value: bytes | None = values["bytes_base64"]
    if value is None and values["value"] is not None:
        value = json.dumps(values["value"], ensure_ascii=False).encode()
    if values["pieces"] is not None:
        value = "".join(text_of(piece) for piece in values["pieces"]).encode()
    key = None if values["key"] is None else values["key"].encode()
    headers = {name: text.encode() for name, text in values["headers"].items()}
    await stage.door.publish(values["topic"], key, value, headers)


VERB: Final = Verb("publish", "anything at all, straight onto the log", _FORM.kind(), _act)
