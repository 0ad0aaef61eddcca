"""Breaks R43 on the node: the agent follows wishes of an earlier attempt and of an earlier decider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from evenflow.agent import service
from evenflow.core.running.reconciling import Action, HeldMember, Wanted, reconcile
from evenflow.testkit.mutants.replacing import replaced


def _obedient(
    wanted: Sequence[Wanted], held: Sequence[HeldMember], newest: Mapping[str, int], *, complete: bool = True
) -> list[Action]:
    del newest
    return reconcile(wanted, [replace(member, epoch=0) for member in held], {}, complete=complete)


def without_stale_refusal() -> AbstractContextManager[None]:
    """Agents that remember neither epoch nor attempt while entered."""
    return replaced(service, "reconcile", _obedient)
