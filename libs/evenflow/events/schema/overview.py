"""The pages docs/events.md and docs/closed-lists.md, written from the registry of streams and the closed lists."""

from __future__ import annotations

import importlib
import pkgutil
import typing
from enum import StrEnum
from typing import Any, Final

from evenflow.core import lifecycle
from evenflow.events.contracts.console import DocumentKind
from evenflow.events.schema.asyncapi import short_name
from evenflow.events.streams import DAY_MS, STREAMS, Stream
from evenflow.events.types import CONTRACTS

_EVENTS_HEAD: Final = """\
# Streams and events

Written by `make schemas` from the registry of streams and the contracts; a test keeps it equal to them.

Each record's value is one body: JSON, or Avro where that is set. Its headers are the envelope: CloudEvents attributes
(`ce_id`, `ce_type`, `ce_source`, `ce_time`, …), `correlation_id`, `causation_id`, `tenant`, `traceparent`, and the
agent's stamp where an agent speaks. Keys decide the partition; they and the number of partitions never change.
Readers ignore fields they do not know, skip and count types they do not know, and park an unknown major version.
What can't be handled is in `<topic>.dlq` (one partition, 30 days) with its origin and reason, unless a stream has none.

| folder of `schemas/` | holds |
|---|---|
| `json/` | JSON Schema of each type, `<type>.v<major>.schema.json`; its `$id` is the envelope's `ce_dataschema` |
| `avro/`, `ids.json` | each wire form ever released, `<type>.v<major>.r<revision>.avsc`; the ids that frame records |
| `documents/` | JSON Schema of what people write: task, node, site, link, dataset, queue, policy |
| `examples/` | one body of each type |
| `asyncapi.json` | all of it as AsyncAPI 3.0 |

## When a contract changes
`make schemas` writes a new revision beside the released ones when the new form and each of them read each other: an
optional field, another order, a wider bound. What is required and new, gone or of another type, a word less on a
closed list, a tighter bound: these are refused, and need a new event type or a new `MAJOR`. Released Avro files are
never edited, because records on the log name them by id. One that no record was ever written with may be deleted
together with its line in `ids.json`; `make schemas` then writes it anew.

## Avro on the wire
A process writes `json` or `avro`, as its host is set (EVENFLOW_HOST_WIRE). `content-type` says which form a value has,
record by record: readers need no setting, and a log may hold both. What agents sign and what they are sent stays JSON.
Avro values are framed as usual: a zero byte, the schema's id from `ids.json` in four bytes, the record. Words of closed
lists are strings, free documents are strings holding JSON, and a submission is a record with its text in `document`.
"""

_LISTS_HEAD: Final = """\
# Closed lists

Written by `make schemas` from the code; a test keeps it equal. A list only grows: a reader may meet any word that was
ever on it.
"""


def events_page() -> str:
    """docs/events.md."""
    return "\n".join([_EVENTS_HEAD, "## Streams", "", *_table(), "", *_sections()]).rstrip("\n") + "\n"


def _table() -> list[str]:
    rows = ["| stream | key | partitions | kept | archive | written by | read by |", "|---|---|---|---|---|---|---|"]
    for stream in STREAMS:
        rows.append(
            f"| [`{stream.name}`](#{_anchor(stream)}) | {_key(stream)} | {stream.partitions} | {_kept(stream)} |"
            f" {'yes' if stream.archive else ''} | {', '.join(stream.writers)} | {', '.join(stream.readers)} |"
        )
    return rows


def _anchor(stream: Stream) -> str:
    return short_name(stream).replace(".", "")


def _key(stream: Stream) -> str:
    return f"`{stream.key}`" if stream.key else "none"


def _kept(stream: Stream) -> str:
    return "compacted" if stream.compacted else f"{stream.retention_ms // DAY_MS} d"


def _sections() -> list[str]:
    lines: list[str] = []
    for stream in STREAMS:
        if not stream.carries:
            continue
        lines += [f"### {short_name(stream)}", ""]
        if not stream.dead_letters:
            lines += ["No dead letters: its one reader is its writer, which stops at what it can't read.", ""]
        lines += ["| type | what it says |", "|---|---|"]
        lines += [_row(name) for name in stream.carries]
        lines.append("")
    lines += ["### Dead letters", "", "| type | what it says |", "|---|---|", _row("record.parked")]
    return lines


def _row(name: str) -> str:
    contract = CONTRACTS.get(name)
    if contract is None:
        return f"| `{name}` | On the closed list; nothing writes it yet. |"
    summary = " ".join((contract.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")
    return f"| [`{name}`](../schemas/json/{name}.v{contract.MAJOR}.schema.json) | {summary} |"


# --- closed lists -------------------------------------------------------------------------------------------------


def closed_lists() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Every closed list by name: what it is, and its words in order."""
    lists: dict[str, tuple[str, tuple[str, ...]]] = {}
    for module in _lifecycle():
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, StrEnum) and value.__module__ == module.__name__:
                lists[name] = (value.__doc__ or "", tuple(str(word) for word in value))
    lists["DocumentKind"] = ("What `document.published` may carry.", typing.get_args(DocumentKind))
    return dict(sorted(lists.items()))


def _lifecycle() -> list[Any]:
    names = sorted(module.name for module in pkgutil.iter_modules(lifecycle.__path__))
    return [importlib.import_module(f"{lifecycle.__name__}.{name}") for name in names]


def closed_lists_page() -> str:
    """docs/closed-lists.md."""
    lines = [_LISTS_HEAD]
    for name, (about, words) in closed_lists().items():
        lines += [f"## {name}", "", " ".join(about.split()), "", ", ".join(f"`{word}`" for word in words), ""]
        lines += _transitions(name)
    return "\n".join(lines).rstrip("\n") + "\n"


def _transitions(name: str) -> list[str]:
    """Which state may follow which, where a table says so."""
    for module in _lifecycle():
        table = getattr(module, "TRANSITIONS", None)
        if table is None or name not in vars(module) or vars(module)[name].__module__ != module.__name__:
            continue
        rows = ["| from | to |", "|---|---|"]
        order = list(vars(module)[name])
        for before, after in table.items():
            words = ", ".join(f"`{one}`" for one in order if one in after)
            rows.append(f"| {f'`{before}`' if before else 'nothing'} | {words or 'nothing: it is final'} |")
        return [*rows, ""]
    return []
