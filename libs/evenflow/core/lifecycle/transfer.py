"""States of a transfer of data between sites."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TransferState(StrEnum):
    """How far a transfer got."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


TRANSITIONS: Final[dict[TransferState, frozenset[TransferState]]] = {
    TransferState.PLANNED: frozenset({TransferState.RUNNING, TransferState.FINISHED, TransferState.FAILED}),
    TransferState.RUNNING: frozenset({TransferState.FINISHED, TransferState.FAILED}),
    TransferState.FINISHED: frozenset(),
    TransferState.FAILED: frozenset(),
}
