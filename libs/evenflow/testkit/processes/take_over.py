"""`make takeover`: two placement processes of one pool on a real log; the leader ends again and again under load.

Half of the leaders are killed, half are asked to stop. Measured from the signal to the first round of the next leader
that a `read_committed` reader sees. Afterwards every submitted task has exactly one first attempt.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from evenflow.core.errors import Unavailable
from evenflow.platform.clock import Clock
from evenflow.platform.observability.logs import make_log
from evenflow.testkit.processes.fleet import Processes, ServiceProcess
from evenflow.testkit.processes.load import Load
from evenflow.testkit.processes.watching import Watcher

KILL_LIMIT_MS: Final = 10_000
STOP_LIMIT_MS: Final = 3_000
RATE: Final = 50
SETTLE_S: Final = 0.5
WITHIN_S: Final = 60.0


@dataclass
class TakeOvers:
    """Milliseconds without a leader, by how the one before ended."""

    killed_ms: list[int] = field(default_factory=list)
    stopped_ms: list[int] = field(default_factory=list)
    tasks: int = 0
    assigned_twice: list[str] = field(default_factory=list)
    epochs: int = 0

    @property
    def complaints(self) -> list[str]:
        """What breaks a limit."""
        found = [f"{ms} ms after kill -9" for ms in self.killed_ms if ms > KILL_LIMIT_MS]
        found += [f"{ms} ms after a stop" for ms in self.stopped_ms if ms > STOP_LIMIT_MS]
        return found + [f"{key} was assigned twice" for key in self.assigned_twice]


async def take_overs(
    count: int, folder: Path, environment: dict[str, str], clock: Clock, say: Callable[[str], None]
) -> TakeOvers:
    """End the leader `count` times. Raises Unavailable when nobody takes over."""
    log = make_log(service="takeover", instance="", clock=clock, level="error")
    load = Load(environment["EVENFLOW_HOST_LOG"], log, rate=RATE)
    watcher = Watcher(load.runtime)
    found = TakeOvers()
    async with Processes(folder, environment, clock) as processes:
        await load.start()
        await watcher.start()
        try:
            pair = [await processes.start("placement"), await processes.start("placement")]
            for number in range(count):
                leader, standby = await _roles(processes, pair)
                await clock.sleep(SETTLE_S)
                kill = number % 2 == 0
                epoch, began_ms = watcher.seen.epoch, clock.monotonic_ms()
                leader.running.tell(signal.SIGKILL if kill else signal.SIGTERM)
                took_ms = await watcher.round_after(epoch, within_s=WITHIN_S) - began_ms
                (found.killed_ms if kill else found.stopped_ms).append(took_ms)
                say(f"{number + 1} of {count}: {'kill -9' if kill else 'stop'}: {took_ms} ms")
                if not kill and (code := await processes.ended(leader)) != 0:
                    raise Unavailable(f"{leader.name} was asked to stop and ended with {code}: {leader.running.said()}")
                pair = [standby, await processes.start("placement")]
            await load.stop()
            await watcher.all_decided(load.submitted, within_s=WITHIN_S)
        finally:
            await watcher.stop()
            await load.stop()
    found.tasks, found.epochs = len(load.submitted), watcher.seen.epoch
    found.assigned_twice = sorted({key for (key, attempt), times in watcher.seen.assigned.items() if times > 1})
    found.assigned_twice += sorted({key for key, attempt in watcher.seen.assigned if attempt > 1})
    return found


async def _roles(processes: Processes, pair: list[ServiceProcess]) -> tuple[ServiceProcess, ServiceProcess]:
    """Who leads and who stands by, once both are there."""
    answers: list[dict[str, Any]] = [await processes.ready(one) for one in pair]
    leads = [answer["services"]["placement"] == "leading" for answer in answers]
    if leads == [False, False]:
        return await _roles(processes, pair)
    if leads == [True, True]:
        raise Unavailable("both placement processes lead")
    return (pair[0], pair[1]) if leads[0] else (pair[1], pair[0])
