"""Breaks R45: what the decider can't take is passed over without a dead letter."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.placement.rounds import Decided, Rounds
from evenflow.platform.broker.codec import Encoded
from evenflow.testkit.mutants.replacing import replaced


def _none(_rounds: Rounds, _decided: Decided) -> list[Encoded]:
    return []


def with_dropped_letters() -> AbstractContextManager[None]:
    """Bad inputs that vanish while entered."""
    return replaced(Rounds, "_dead_letters", _none)
