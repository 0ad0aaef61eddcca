"""A service exactly as `evenflow run` runs it, which sends itself a signal at a fail point.

    python -m evenflow.testkit.processes.member placement --point placement.before-round-commit --nth 40 --signal STOP
    python -m evenflow.testkit.processes.member billing --orders FILE

STOP leaves it standing there until somebody sends CONT; KILL ends it there. With `--orders` the point is named later:
write {"point": …, "nth": …, "signal": …} to the file and send SIGUSR1.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from evenflow.core.errors import EvenflowError
from evenflow.hosting.single import configure, run_service


class Harm:
    """A fail point that signals its own process when the named point is reached for the nth time."""

    def __init__(self) -> None:
        self._point = ""
        self._left = 0
        self._signal = signal.SIGKILL

    def order(self, point: str, nth: int, number: signal.Signals) -> None:
        """Do harm there; counted from now."""
        self._point, self._left, self._signal = point, nth, number

    async def at(self, name: str) -> None:
        """What the service awaits at every fail point."""
        if name != self._point:
            return
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), self._signal)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m evenflow.testkit.processes.member", description=__doc__)
    parser.add_argument("service")
    parser.add_argument("--point", default="")
    parser.add_argument("--nth", type=int, default=1)
    parser.add_argument("--signal", choices=("STOP", "KILL"), default="KILL")
    parser.add_argument("--orders", type=Path)
    chosen = parser.parse_args()
    harm = Harm()
    harm.order(chosen.point, chosen.nth, signal.Signals[f"SIG{chosen.signal}"])

    def read_orders(*_: Any) -> None:
        order = json.loads(chosen.orders.read_text(encoding="utf-8"))
        harm.order(order["point"], order["nth"], signal.Signals[f"SIG{order['signal']}"])

    if chosen.orders is not None:
        signal.signal(signal.SIGUSR1, read_orders)
    try:
        return run_service(configure(chosen.service, None), harm.at)
    except EvenflowError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
