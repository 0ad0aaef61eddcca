"""Simulated nodes in a process of their own, joined over HTTP like any machine.

    python -m evenflow.testkit.processes.nodes --url http://127.0.0.1:7071 --token TOKEN --count 8 --folder DIR

Machines and disks are files of the folder, so a process that is killed and started again finds its nodes' tasks where
they then stand, as the agents of real machines would.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, Final

from evenflow.agent.clients.http import HttpExchange
from evenflow.hosting.development.fleet import Fleet
from evenflow.hosting.signals import until_told
from evenflow.hosting.surroundings import HostSettings, Surroundings
from evenflow.platform.supervisor import Supervisor

SITES: Final = ("east", "west", "north")
CORES: Final = 64


def document(number: int) -> dict[str, Any]:
    """Nodes alike, turn by turn over three sites; an hour of a core costs 3.60, so a second costs 0.001."""
    site = SITES[number % len(SITES)]
    return {"id": f"{site}-{number}", "site": site, "cpu": CORES, "memory": "512GiB", "cpu_price_per_hour": "3.60"}


async def _run(chosen: argparse.Namespace) -> int:
    told = until_told()
    surroundings = Surroundings(HostSettings(level="warning"))
    documents = [document(number) for number in range(chosen.count)]
    fleet = Fleet(surroundings, lambda: HttpExchange(chosen.url), chosen.token, chosen.folder, documents)
    supervisor = Supervisor(surroundings.clock, surroundings.logger("nodes"))
    supervisor.add(fleet.name, lambda: fleet)
    try:
        await supervisor.run(told)
    finally:
        fleet.close()
    return 0


def main() -> int:
    """Run until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m evenflow.testkit.processes.nodes", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--folder", type=Path, required=True)
    return asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
