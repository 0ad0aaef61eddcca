"""What producers and the console ask of tasks (`evenflow.tasks.v1`)."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Document, Id, Text


class TaskSubmitted(Contract):
    """A submission. On the wire the value is the specification itself, exactly as its author wrote it.

    `raw` holds those bytes unread: the strict door of placement parses them, so that a bad field becomes a rejection
    with its path instead of a dead letter.
    """

    TYPE: ClassVar = EventType.TASK_SUBMITTED
    raw: bytes


class TaskCancelRequested(Contract):
    """Stop a task, whatever it is doing."""

    TYPE: ClassVar = EventType.TASK_CANCEL_REQUESTED
    tenant: Id = "default"
    task: Id
    reason: Text = ""


class TaskChangeRequested(Contract):
    """Change a task's priority or number of members. `change` is checked at placement's door."""

    TYPE: ClassVar = EventType.TASK_CHANGE_REQUESTED
    tenant: Id = "default"
    task: Id
    change: Document
