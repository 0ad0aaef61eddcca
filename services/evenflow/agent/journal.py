"""What the agent must remember across its own death: members it holds, and receipts it still has to deliver.

A row changes and its receipt enters the outbox in one write, so that no end is lost and none is told twice.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.running.reconciling import HeldMember
from evenflow.events.contract import Part
from evenflow.events.contracts.agent import Outcome
from evenflow.events.contracts.checkpoint import ResumePoint
from evenflow.events.contracts.placement import AttemptDesired


class Phase(StrEnum):
    """How far a member got here. A start is written down before it happens."""

    ACCEPTED = "accepted"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"
    RECLAIMED = "reclaimed"


RANK: Final = {phase: rank for rank, phase in enumerate(Phase)}


def slot_of(desired: AttemptDesired) -> str:
    """tenant/task/member."""
    return f"{desired.tenant}/{desired.task}/{desired.place.member}"


def key_of(desired: AttemptDesired) -> str:
    """tenant/task/attempt/member: the name of one member's run on this node."""
    return f"{desired.tenant}/{desired.task}/{desired.attempt}/{desired.place.member}"


class Held(Part):
    """One member of one attempt. Moments by the machine's monotonic clock, of the boot named `boot`.

    `desired` is the newest wish applied, `causation` the id of the event that brought it. `resumed` is the checkpoint
    it started from; `checkpoint` the number of the last one written; `output_bytes` what was written at the end.
    """

    desired: AttemptDesired
    causation: str = ""
    correlation: str = ""
    phase: Phase = Phase.ACCEPTED
    boot: str = ""
    accepted_ms: int = 0
    starting_ms: int = 0
    staged: bool = False
    resumed: ResumePoint | None = None
    damaged: tuple[str, ...] = ()
    checkpoint: int = 0
    seen_run_ms: int = 0
    seen_progress_ms: int = 0
    start_ms: int = 0
    ended_ms: int = 0
    outcome: Outcome | None = None
    output_bytes: int = 0
    leftover: bool = False

    @property
    def key(self) -> str:
        """tenant/task/attempt/member."""
        return key_of(self.desired)

    @property
    def slot(self) -> str:
        """tenant/task/member."""
        return slot_of(self.desired)

    def summary(self) -> HeldMember:
        """What reconciling needs of it."""
        desired = self.desired
        return HeldMember(
            key=self.key,
            slot=self.slot,
            attempt=desired.attempt,
            epoch=desired.epoch,
            wish=Wish(desired.wish),
            reclaimed=self.phase is Phase.RECLAIMED,
        )


class Outgoing(Part):
    """A record as the gateway takes it: the exact text that was signed, and its stamp. Never changed once made."""

    stream: str
    type: str
    id: str
    key: str
    time_ms: int
    value: str
    session: str
    sequence: int
    attempt: int = 0
    member: int = 0
    epoch: int = 0
    signature: str
    correlation_id: str = ""
    causation_id: str = ""
