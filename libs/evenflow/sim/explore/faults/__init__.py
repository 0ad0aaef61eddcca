"""The kinds of fault that exploration draws from, by name: one family a file."""

from __future__ import annotations

from typing import Final

from evenflow.sim.explore.faults import agents, machines, messages, services, stores
from evenflow.sim.explore.faults.fault import Fault

FAULTS: Final[dict[str, Fault]] = {
    fault.kind: fault for family in (services, agents, machines, messages, stores) for fault in family.FAULTS
}
