"""All faults, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from evenflow.testkit.processes.faults.harm.brokers import BROKER_ROWS
from evenflow.testkit.processes.faults.harm.row import Row
from evenflow.testkit.processes.faults.harm.servers import SERVER_ROWS
from evenflow.testkit.processes.faults.harm.services import SERVICE_ROWS
from evenflow.testkit.processes.faults.harm.ways import WAY_ROWS

ROWS: Final[tuple[Row, ...]] = (*SERVICE_ROWS, *SERVER_ROWS, *WAY_ROWS, *BROKER_ROWS)
