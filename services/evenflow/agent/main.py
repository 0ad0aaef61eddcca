"""The agent's composition root, and the way a real machine runs one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenflow.agent.clients.exchange import Exchange
from evenflow.agent.clients.gateway import GatewayObjects, HttpGateway
from evenflow.agent.executors.local_machine import LocalMachine
from evenflow.agent.executors.machine import PlainMachine
from evenflow.agent.executors.process import ProcessExecutor
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.agent.ports import Surroundings
from evenflow.agent.service import AgentService
from evenflow.agent.settings import AgentSettings
from evenflow.agent.stores import SqliteDisk
from evenflow.events.contract import Document
from evenflow.events.documents.node import parse_node
from evenflow.platform.clock import RandomIds, SystemClock, system_random
from evenflow.platform.security.identity import load_or_make_key


def build_agent(surroundings: Surroundings, settings: AgentSettings | None = None) -> AgentService:
    """Put one node's agent together."""
    return AgentService(surroundings, settings or AgentSettings())


async def run_agent(
    exchange: Exchange, token: str, node_document: Document, data_dir: Path, *, log: Any,
    settings: AgentSettings | None = None, started: Callable[[AgentService], None] = lambda _: None,
) -> None:  # fmt: skip
    """Run this machine's agent until it is cancelled or ends; its members live on. `exchange` leads to a gateway.

    Raises FieldRefused for a wrong document, Refused when another agent uses `data_dir`, Ended when the gateway
    will not have this node.
    """
    description = parse_node(node_document)
    clock, key = SystemClock(), load_or_make_key(data_dir / "node.key")
    gateway = HttpGateway(exchange, node=description.id, key=key, token=token)
    disk, objects, ids = SqliteDisk(data_dir / "agent.db"), GatewayObjects(gateway), RandomIds(clock)
    around = Surroundings(
        node=description.id, document=node_document, instance=ids.new_id(), clock=clock, ids=ids,
        random=system_random(), objects=objects, gateway=gateway, disk=disk, machine=LocalMachine(clock), key=key,
        log=log, simulated=SimulatedExecutor(PlainMachine(description, clock)),
        process=ProcessExecutor(data_dir, clock, objects=objects, log=log),
    )  # fmt: skip
    agent = build_agent(around, settings or AgentSettings(progress_period_ms=30_000))
    try:
        await agent.start()
        started(agent)
        await agent.wait()
    finally:
        await agent.stop()
        disk.close()
