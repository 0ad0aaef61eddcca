"""Writing a scenario document as a file that people read: one step a line, one node a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from evenflow.events.documents.reading import read_document
from evenflow.sim.explore.scene import Document

LINE_MAX: Final = 120
ORDER: Final = (
    *("version", "name", "about", "start", "seed", "until", "settings", "policy"),
    *("sites", "links", "nodes", "queues", "datasets", "impossible_steps", "steps", "expect"),
)
#: One entry a line, however short.
LISTED: Final = ("steps",)
#: Left out when there is nothing in them.
OPTIONAL: Final = ("settings", "policy", "sites", "links", "nodes", "queues", "datasets")
#: Texts that mean themselves without quotes: words, and a number with its unit.
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*|[0-9]+(\.[0-9]+)?[A-Za-z][A-Za-z/]*")
_WORDS: Final = ("null", "true", "false", "NaN", "Infinity", "yes", "no", "on", "off", "y", "n")
#: A line of its own, where nothing follows.
_PLAIN_LINE: Final = re.compile(r"[A-Za-z][A-Za-z0-9 ._/,;()*'’-]*[A-Za-z0-9.)]")


def written(document: Document, *, remarks: tuple[str, ...] = ()) -> str:
    """The text of a scenario file; `remarks` become comments at its beginning.

    Raises ValueError when the text would not read back as the document.
    """
    lines = [f"# {' '.join(remark.split())}" for remark in remarks]
    names = [name for name in ORDER if name in document] + [name for name in document if name not in ORDER]
    for name in names:
        value = document[name]
        if value or name not in OPTIONAL:
            lines += _entry(name, value)
    text = "\n".join(lines) + "\n"
    left_out = {name: document[name] for name in OPTIONAL if name in document and not document[name]}
    read = read_document(text, source="scenario")
    if not isinstance(read, dict) or {**left_out, **read} != document:
        raise ValueError("the document can't be written as a scenario file")
    return text


def _entry(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list) and value:
        line = f"{name}: {flow(value)}"
        if name not in LISTED and len(line) <= LINE_MAX and len(value) == 1:
            yield line
            return
        yield f"{name}:"
        for entry in value:
            yield f"  - {flow(entry)}"
    elif isinstance(value, str) and _PLAIN_LINE.fullmatch(value) and value not in _WORDS:
        yield f"{name}: {value}"
    else:
        yield f"{name}: {flow(value)}"


def flow(value: Any) -> str:
    """One value on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(str(name))}: {flow(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(inner) for inner in value) + "]"
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) and value not in _WORDS else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value)
