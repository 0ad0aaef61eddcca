"""Versioned documents: policy, queues, sites, links; what is in force, and who changed what and when."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.queueing.description import Limits, QueueDescription
from evenflow.events.contracts.console import ChangeRecorded, DocumentPublished
from evenflow.events.documents.queue import parse_queue
from evenflow.platform.broker.codec import Received

HISTORY_KEPT: Final = 200
DEFAULT_QUEUE: Final = "default"
PUBLISHED: Final = "document.publish"
#: Outcomes of changes that took effect; older lines say none.
DONE: Final = ("requested", "")
#: Its documents hold who has access; they are shown by their own routes, without what is secret.
HIDDEN: Final = "setting"


@dataclass(frozen=True, slots=True)
class Paper:
    """The newest version of one document."""

    body: DocumentPublished
    at_ms: int

    def row(self) -> dict[str, Any]:
        """The document as the API gives it."""
        return {**self.body.model_dump(mode="json"), "at_ms": self.at_ms}


class Papers:
    """Documents by kind and name, and the record of changes."""

    def __init__(self, change_count_max: int) -> None:
        self.by_key: dict[str, Paper] = {}
        self.queues: dict[str, QueueDescription] = {DEFAULT_QUEUE: QueueDescription(id=DEFAULT_QUEUE)}
        self.history: dict[str, deque[dict[str, Any]]] = {}
        self.changes: deque[dict[str, Any]] = deque(maxlen=change_count_max)
        self.letters: dict[str, str] = {}

    def published(self, received: Received) -> None:
        """A new version of a document."""
        body = received.body
        if isinstance(body, DocumentPublished):
            key = f"{body.kind}/{body.name}"
            self.by_key[key] = Paper(body, received.timestamp_ms)
            kept = self.history.setdefault(key, deque(maxlen=HISTORY_KEPT))
            if not any(one["version"] == body.version for one in kept):
                kept.append(self.by_key[key].row())
            if body.kind == "queue":
                try:
                    self.queues[body.name] = parse_queue(body.document)
                except FieldRefused:  # accepted by newer rules than these
                    self.queues.setdefault(body.name, QueueDescription(id=body.name))
        elif received.tombstone:
            self.by_key.pop(received.key, None)
            kind, _, name = received.key.partition("/")
            if kind == "queue" and name != DEFAULT_QUEUE:
                self.queues.pop(name, None)

    def changed(self, received: Received) -> None:
        """A line of the audit. It outlives older versions of a compacted document, so their history is read from it."""
        body = received.body
        if not isinstance(body, ChangeRecorded):
            return
        row = {**body.model_dump(mode="json"), "at_ms": received.timestamp_ms, "id": received.envelope.id}
        self.changes.append(row)
        if body.outcome not in DONE:
            return
        if body.action == PUBLISHED:
            kept = self.history.setdefault(body.subject, deque(maxlen=HISTORY_KEPT))
            version = body.parameters.get("version")
            if not any(one["version"] == version for one in kept):
                kind, _, name = body.subject.partition("/")
                kept.append(
                    {
                        "kind": kind,
                        "name": name,
                        "version": version,
                        "document": body.parameters.get("document"),
                        "who": body.actor,
                        "reason": body.reason,
                        "at_ms": received.timestamp_ms,
                    }
                )
        elif body.action in ("dead-letter.retry", "dead-letter.drop"):
            self.letters[body.subject] = body.action.removeprefix("dead-letter.")

    def version(self, key: str) -> int:
        """The newest version of a document; 0 when there is none."""
        paper = self.by_key.get(key)
        return paper.body.version if paper is not None else 0

    def versions(self, key: str) -> list[dict[str, Any]]:
        """The known versions of a document, newest first."""
        return sorted(self.history.get(key, ()), key=lambda row: -int(row["version"] or 0))

    def of_kind(self, kind: str) -> dict[str, dict[str, Any]]:
        """Documents of one kind by name."""
        found = {key: paper for key, paper in self.by_key.items() if paper.body.kind == kind}
        return {found[key].body.name: found[key].body.document for key in sorted(found)}


def limits_row(limits: Limits) -> dict[str, int | None]:
    """Limits by dimension; null = none."""
    return {
        "cpu_milli": limits.cpu_milli,
        "memory_bytes": limits.memory_bytes,
        "disk_bytes": limits.disk_bytes,
        "devices_milli": limits.devices_milli,
    }
