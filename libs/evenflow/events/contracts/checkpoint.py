"""What checkpoint states about saved progress. Only verified ones may be resumed from."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Id, Part, Text


class CheckpointFact(Contract):
    """One checkpoint of a task: number, writer and place."""

    tenant: Id
    task: Id
    checkpoint: Count
    attempt: Count
    generation: Count
    progress_ms: Count
    manifest: Text
    size_bytes: Count
    site: Id


class CheckpointVerified(CheckpointFact):
    """Manifest and every part are there and their digests are right."""

    TYPE: ClassVar = EventType.CHECKPOINT_VERIFIED


class CheckpointReplicated(CheckpointFact):
    """A copy is at another site."""

    TYPE: ClassVar = EventType.CHECKPOINT_REPLICATED
    to_site: Id


class CheckpointDamaged(CheckpointFact):
    """Something is missing or has another digest: never chosen."""

    TYPE: ClassVar = EventType.CHECKPOINT_DAMAGED
    problem: Text


class CheckpointPruned(CheckpointFact):
    """Deleted, because newer verified ones exist or the task ended."""

    TYPE: ClassVar = EventType.CHECKPOINT_PRUNED


class ResumePoint(Part):
    """A verified checkpoint as desired state names it, newest first in a list."""

    checkpoint: Count
    generation: Count
    progress_ms: Count
    manifest: Text
    size_bytes: Count
    site: Id
