"""`make zombie`: a leader stands still between writing a round and committing it, for longer than its session.

The standby leads; then the first one goes on. It must commit nothing, say what the broker told it, and end with its own
exit code.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evenflow.core.errors import Unavailable
from evenflow.hosting.single import ENDED_FROM
from evenflow.platform.broker.transactions import FENCED, UNKNOWN
from evenflow.platform.clock import Clock
from evenflow.platform.observability.logs import make_log
from evenflow.testkit.processes.fleet import Processes
from evenflow.testkit.processes.load import Load
from evenflow.testkit.processes.watching import Watcher

STAND_S: Final = 30.0
RATE: Final = 50
ROUND: Final = 40
WITHIN_S: Final = 60.0

#: Refused by the log, or not answered within the round's limit.
_CODES: Final = (ENDED_FROM + FENCED, ENDED_FROM + UNKNOWN)


@dataclass
class Zombie:
    """What became of the one that stood still."""

    exit_code: int
    said: str
    epoch: int
    late_rounds: int
    tasks: int
    assigned_twice: list[str] = field(default_factory=list)

    @property
    def complaints(self) -> list[str]:
        """What should not be."""
        found = [f"{key} was assigned twice" for key in self.assigned_twice]
        if self.late_rounds:
            found.append(f"{self.late_rounds} rounds of epoch {self.epoch} were committed after its successor's first")
        if self.exit_code not in _CODES:
            found.append(f"it ended with {self.exit_code}, {' or '.join(map(str, _CODES))} says why it must")
        return found


async def zombie(
    folder: Path, environment: dict[str, str], clock: Clock, say: Callable[[str], None], *, stand_s: float = STAND_S
) -> Zombie:
    """Let a leader stand still in a round. Raises Unavailable when nobody takes over."""
    log = make_log(service="zombie", instance="", clock=clock, level="error")
    load = Load(environment["EVENFLOW_HOST_LOG"], log, rate=RATE)
    watcher = Watcher(load.runtime)
    async with Processes(folder, environment, clock) as processes:
        await load.start()
        await watcher.start()
        try:
            first = await processes.start(
                "placement", at="placement.before-round-commit", nth=ROUND, number=signal.SIGSTOP
            )
            await processes.ready(first, state="leading")
            await processes.start("placement")
            await processes.stands(first, within_s=WITHIN_S)
            epoch = watcher.seen.epoch
            say(f"epoch {epoch} stands still in its round {ROUND}")
            took_ms = -clock.monotonic_ms() + await watcher.round_after(epoch, within_s=WITHIN_S)
            say(f"epoch {watcher.seen.epoch} leads after {took_ms} ms")
            await clock.sleep(max(0.0, stand_s - took_ms / 1_000))
            first.running.tell(signal.SIGCONT)
            exit_code = await processes.ended(first)
            await load.stop()
            await watcher.all_decided(load.submitted, within_s=WITHIN_S)
        finally:
            await watcher.stop()
            await load.stop()
    ends = first.said("process ended")
    if not ends:
        raise Unavailable(f"the first one did not say why it ended: {first.running.said()}")
    rounds = watcher.seen.rounds
    successor = next(index for index, (later, _, _) in enumerate(rounds) if later > epoch)
    return Zombie(
        exit_code=exit_code,
        said=str(ends[-1]["reason"]),
        epoch=epoch,
        late_rounds=sum(1 for one, _, _ in rounds[successor:] if one == epoch),
        tasks=len(load.submitted),
        assigned_twice=sorted({key for (key, _), times in watcher.seen.assigned.items() if times > 1}),
    )
