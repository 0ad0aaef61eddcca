"""The services as processes of their own, on servers that belong to the test and may be harmed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from evenflow.platform.clock import SystemClock
from evenflow.testkit.processes.fleet import Processes
from evenflow.testkit.servers.addresses import NEEDED
from evenflow.testkit.servers.local import LocalServers

CLOCK = SystemClock()
#: A silent node is lost after four seconds instead of thirty; any machine joins by one token.
QUICK = {
    "EVENFLOW_GATEWAY_TOKEN": "of-this-test",
    "EVENFLOW_GATEWAY_HEARTBEAT_MS": "500",
    "EVENFLOW_INVENTORY_HEARTBEAT_PERIOD_MS": "500",
    "EVENFLOW_INVENTORY_SUSPECT_AFTER_MS": "2000",
    "EVENFLOW_INVENTORY_SILENCE_TOLERANCE_MS": "4000",
    "EVENFLOW_INVENTORY_HOLD_OFF_MS": "0",
}


@pytest.fixture
async def own_servers(tmp_path: Path, pytestconfig: pytest.Config) -> AsyncIterator[LocalServers]:
    """Servers in an empty folder, not started."""
    made = LocalServers(pytestconfig.rootpath, tmp_path / "servers", CLOCK, lambda _: None, tied=True)
    yield made
    await made.stop()


@pytest.fixture
async def processes(own_servers: LocalServers, tmp_path: Path) -> AsyncIterator[Processes]:
    """Services on those servers, which are started first."""
    addresses = await own_servers.start(NEEDED)
    async with Processes(tmp_path / "processes", {**addresses.host_environment(), **QUICK}, CLOCK) as made:
        yield made
