"""A service exactly as `evenflow run` runs it, which at one fail point sends itself a signal.

    python -m evenflow.testkit.processes.member placement --point placement.before-round-commit --nth 40 --signal STOP

STOP leaves it standing there until somebody sends CONT; KILL ends it there.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from evenflow.core.errors import EvenflowError
from evenflow.hosting.single import configure, run_service
from evenflow.platform.fail_points import FailPoint


def harmful(point: str, nth: int, number: signal.Signals) -> FailPoint:
    """A fail point that signals its own process when `point` is reached for the nth time."""
    reached = 0

    async def at(name: str) -> None:
        nonlocal reached
        if name != point:
            return
        reached += 1
        if reached == nth:
            os.kill(os.getpid(), number)

    return at


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m evenflow.testkit.processes.member", description=__doc__)
    parser.add_argument("service")
    parser.add_argument("--point", required=True)
    parser.add_argument("--nth", type=int, default=1)
    parser.add_argument("--signal", choices=("STOP", "KILL"), required=True)
    chosen = parser.parse_args()
    try:
        number = signal.Signals[f"SIG{chosen.signal}"]
        return run_service(configure(chosen.service, None), harmful(chosen.point, chosen.nth, number))
    except EvenflowError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
