"""Breaks the repetition of last receipts: an end that vanished on its way is never told again."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.agent.service import AgentService
from evenflow.testkit.mutants.replacing import replaced


async def _once_is_enough(_agent: AgentService, _now_ms: int) -> None:
    return


def without_telling_again() -> AbstractContextManager[None]:
    """Agents that say everything once while entered."""
    return replaced(AgentService, "_tell_again", _once_is_enough)
