"""The files of a run: every record, every change, every use, every charge, and a summary.

    events.jsonl    every record on every topic: t, topic, partition, offset, key, type, headers, value
    timeline.jsonl  every change of a task, attempt, member, node, device, queue, link, copy, checkpoint, alert
    usage.jsonl     use of each queue, node and device after each change
    ledger.jsonl    every ledger entry
    summary.json    final states, counts, violations, seed, versions

The same run gives the same bytes: nothing here knows the wall clock, the machine or the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from evenflow.sim.observation.model import Observation, Row
from evenflow.sim.observation.record import Seen, json_line

FORMAT: Final = 1
EVENTS: Final = "events.jsonl"
_BUFFER_BYTES: Final = 1 << 16
#: Rows of the ledger that only serve the observer.
_INTERNAL: Final = ("task_shown",)


def counted(model: Observation) -> dict[str, int]:
    """How often each countable thing happened, by name."""
    found: dict[str, int] = {}
    for entry in model.counts:
        found[entry.count] = found.get(entry.count, 0) + 1
    found["rejected"] = len({entry.task or entry.t_ms for entry in model.counts if entry.count == "rejected"})
    return dict(sorted(found.items()))


def final_states(model: Observation) -> dict[str, Any]:
    """What everything was in the end, by kind and name."""
    return {
        "tasks": {task.shown: "" if task.state is None else str(task.state) for task in model.tasks.values()},
        "nodes": {node.id: f"{node.reach}/{node.administration}/{node.health}" for node in model.nodes.values()},
        "queues": {view.id: dict(sorted(view.used.items())) for view in model.queues.values()},
        "links": {name: past.last for name, past in model.links.items()},
        "copies": {name: past.last for name, past in model.copies.items()},
        "alerts": {"/".join(key): past.last for key, past in model.alerts.items() if past.last != "cleared"},
    }


class RunFiles:
    """Writes one run's folder; records are written as they come, the rest at the end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._events = (folder / EVENTS).open("wb", buffering=_BUFFER_BYTES)

    def record(self, record: Seen) -> None:
        """One line of `events.jsonl`."""
        self._events.write(record.line())

    def finish(self, model: Observation, summary: Row) -> None:
        """Everything else."""
        self._events.close()
        self._lines("timeline.jsonl", model.timeline)
        self._lines("usage.jsonl", model.usage)
        ledger = ({name: value for name, value in row.items() if name not in _INTERNAL} for row in model.ledger)
        self._lines("ledger.jsonl", ledger)
        text = json.dumps(summary, ensure_ascii=False, indent=1, sort_keys=True)
        (self._folder / "summary.json").write_text(text + "\n", encoding="utf-8", newline="\n")

    def _lines(self, name: str, rows: Iterable[Row]) -> None:
        with (self._folder / name).open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json_line(row) + "\n" for row in rows)


def read_events(path: Path) -> Iterator[Seen]:
    """The records of an `events.jsonl`, for folding a kept run again.

    Values that were JSON are written anew, so their bytes may differ from the log's; what they say does not.
    """
    import base64

    def raw(value: Any) -> bytes | None:
        if isinstance(value, dict) and value.keys() == {"base64"}:
            return base64.b64decode(value["base64"])
        return None if value is None else str(value).encode()

    with path.open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            value = row["value"]
            whole = raw(value) if isinstance(value, str) or value is None else json_line(value).encode()
            yield Seen(
                round(row["t"] * 1000),
                row["topic"],
                row["partition"],
                row["offset"],
                raw(row["key"]),
                raw(value) if isinstance(value, dict) and value.keys() == {"base64"} else whole,
                tuple((name, raw(text)) for name, text in row["headers"].items()),
            )
