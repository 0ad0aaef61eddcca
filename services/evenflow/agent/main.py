"""The agent's composition root, and the way a real machine runs one."""

from __future__ import annotations

from evenflow.agent.ports import Surroundings
from evenflow.agent.service import AgentService
from evenflow.agent.settings import AgentSettings


def build_agent(surroundings: Surroundings, settings: AgentSettings | None = None) -> AgentService:
    """Put one node's agent together."""
    return AgentService(surroundings, settings or AgentSettings())
