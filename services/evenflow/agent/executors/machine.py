"""A simulated machine: what physically is there. It outlives the agent; only `boot_anew` empties it.

The simulation drives it (starts that fail, devices that break, processes that die) and gives it its links;
`evenflow dev` uses it as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from evenflow.agent.executors.simulated_process import KILLED, ProcessEnd, SimulatedProcess
from evenflow.agent.ports import Sample
from evenflow.core.demand.task import NEVER, Workload
from evenflow.core.fleet.catalogue import SPEED_ONE_PPM, relative_speed_ppm
from evenflow.core.fleet.description import NodeDescription
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.node import DeviceState
from evenflow.platform.clock import Clock

START_MS: Final = 500
STOP_MS: Final = 500
TRANSFER_STEPS: Final = 4

#: what, from, to, bytes, counted → all arrived; raises TransferBroken
Carry = Callable[[str, str, str, int, Callable[[int], None]], Awaitable[None]]
#: from, to, bytes → what a probe found
Probe = Callable[[str, str, int], Awaitable[Sample | None]]


@dataclass(slots=True)
class StartFault:
    """How the next starts go. Empty `task` = every task; `member` None = every member; `left` None = for ever."""

    task: str = ""
    member: int | None = None
    takes_ms: int | None = None
    fails_after_ms: int | None = None
    hangs: bool = False
    left: int | None = None


class SimulatedMachine(Protocol):
    """What the simulated executor needs of a machine."""

    @property
    def boot(self) -> str: ...
    def now_ms(self) -> int:
        """The machine's monotonic clock."""

    def processes(self) -> dict[str, SimulatedProcess]:
        """What is there, by key, ended processes included until they are cleaned up."""

    def start_terms(self, task: str, member: int) -> StartFault:
        """How this start goes; uses up a fault's count."""

    def stop_ms(self, task: str) -> int:
        """How long it takes from the end of work to an empty place."""

    def speed_ppm(self, devices: Sequence[int], workload: Workload) -> int:
        """Relative speed of work there."""

    def leftover_on(self, devices: Sequence[int]) -> bool:
        """Whether a process stays on one of them."""

    async def change(self, key: str, until_ms: int | None) -> None:
        """Return when something happened to the process, or at a moment."""

    def touch(self, key: str) -> None:
        """Something happened to the process."""

    def keep(self, key: str) -> None:
        """The process changed, came or went: write it down where the machine outlives this program."""


class PlainMachine:
    """A machine as its node document describes it. Tasks are named by id or by tenant/task."""

    def __init__(
        self, description: NodeDescription, clock: Clock, *, carry: Carry | None = None, probe: Probe | None = None,
        has_copy: Callable[[str, str], bool] = lambda _dataset, _site: True,
        start_ms: int = START_MS, stop_ms: int = STOP_MS, bandwidth_bits: int = 10_000_000_000,
    ) -> None:  # fmt: skip
        self.description = description
        self._clock = clock
        self._carry = carry
        self._probe = probe
        self._has_copy = has_copy
        self._start_ms = start_ms
        self._stop_ms = stop_ms
        self._bandwidth_bits = bandwidth_bits
        self._processes: dict[str, SimulatedProcess] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._boots = 1
        self._booted_ms = max(0, clock.now_ms())
        self.start_faults: list[StartFault] = []
        self.stop_times_ms: dict[str, int] = {}
        self.broken: dict[int, None] = {}
        self.leftovers: dict[int, None] = {}
        self.raw_readings: dict[str, Any] = {}
        self.silent = False

    # --- what the agent asks --------------------------------------------------------------------------------------

    @property
    def boot(self) -> str:
        """Changes with every boot."""
        return f"boot-{self._boots}"

    @property
    def booted_ms(self) -> int:
        """Wall clock of the boot."""
        return self._booted_ms

    def now_ms(self) -> int:
        """The machine's monotonic clock."""
        return self._clock.monotonic_ms()

    def device_states(self) -> Sequence[DeviceState]:
        """By index. A leftover holds its device once no living process is there."""
        return [self._state(index) for index in range(self.description.device_count)]

    def readings(self) -> Mapping[str, Any] | None:
        """Raw readings set from outside; None while the sensors are silent."""
        return None if self.silent else self.raw_readings

    async def holds(self, dataset: str) -> bool:
        """As the world says."""
        return self._has_copy(dataset, self.description.site)

    async def transfer(
        self, what: str, *, from_site: str, to_site: str, size_bytes: int, counted: Callable[[int], None]
    ) -> None:
        """Over the world's links, else at the plain bandwidth."""
        if self._carry is not None:
            await self._carry(what, from_site, to_site, size_bytes, counted)
            return
        sent = 0
        for step in range(1, TRANSFER_STEPS + 1):
            part = size_bytes * step // TRANSFER_STEPS - sent
            await self._clock.sleep(part * 8 / self._bandwidth_bits)
            counted(part)
            sent += part

    async def probe(self, to_site: str, size_bytes: int) -> Sample | None:
        """Over the world's links; a machine without any can't."""
        return None if self._probe is None else await self._probe(self.description.site, to_site, size_bytes)

    # --- what the executor asks -----------------------------------------------------------------------------------

    def processes(self) -> dict[str, SimulatedProcess]:
        """What is there, by key."""
        return self._processes

    def start_terms(self, task: str, member: int) -> StartFault:
        """The first fault that fits, or an ordinary start."""
        for fault in self.start_faults:
            fits = fault.task in ("", task, task.partition("/")[2]) and fault.member in (None, member)
            if fits and fault.left != 0:
                if fault.left is not None:
                    fault.left -= 1
                takes_ms = self._start_ms if fault.takes_ms is None else fault.takes_ms
                return StartFault(task, member, takes_ms, fault.fails_after_ms, fault.hangs)
        return StartFault(task, member, self._start_ms)

    def stop_ms(self, task: str) -> int:
        """What was set for the task, else the ordinary time."""
        found = self.stop_times_ms.get(task, self.stop_times_ms.get(task.partition("/")[2]))
        return self._stop_ms if found is None else found

    def speed_ppm(self, devices: Sequence[int], workload: Workload) -> int:
        """By the catalogue; without devices 1."""
        group = self.description.devices
        return relative_speed_ppm(group.model, workload) if devices and group is not None else SPEED_ONE_PPM

    def leftover_on(self, devices: Sequence[int]) -> bool:
        """Whether one of them is held."""
        return any(index in self.leftovers for index in devices)

    async def change(self, key: str, until_ms: int | None) -> None:
        """Wait for `touch` or the moment."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, [])
        waiting.append(future)
        try:
            if until_ms is None:
                await future
                return
            async with asyncio.timeout(max(0, until_ms - self.now_ms()) / 1000):
                await future
        except TimeoutError:
            pass
        finally:
            if future in waiting:
                waiting.remove(future)
            if not waiting and self._waiting.get(key) is waiting:
                del self._waiting[key]

    def touch(self, key: str) -> None:
        """Wake who waits for the process."""
        for future in self._waiting.pop(key, []):
            if not future.done():
                future.set_result(None)

    def keep(self, key: str) -> None:
        """Nothing: this machine ends with the program that simulates it."""

    # --- what happens to it -----------------------------------------------------------------------------------------

    def boot_anew(self) -> None:
        """The machine went down and came up again: no process is left, leftovers neither."""
        self._boots += 1
        self._booted_ms = max(0, self._clock.now_ms())
        keys = [*self._processes]
        self._processes.clear()
        self.leftovers.clear()
        for key in keys:
            self.touch(key)

    def kill_process(self, task: str, member: int = 0) -> bool:
        """Kill a member's living process; whether there was one."""
        found = False
        for process in self._living():
            if process.member == member and task in (process.task, f"{process.tenant}/{process.task}"):
                self._finish(process, Cause.UNKNOWN, "killed by signal 9")
                found = True
        return found

    def break_device(self, index: int) -> None:
        """The device fails, and what runs on it with it."""
        self.broken[index] = None
        for process in self._living():
            if index in process.devices:
                self._finish(process, Cause.DEVICE_BROKEN, f"device {index} broke")

    def repair_device(self, index: int) -> None:
        """The device works again and nothing is on it."""
        self.broken.pop(index, None)
        self.leftovers.pop(index, None)

    def leave_leftover(self, index: int) -> None:
        """A process stays on the device after its task ends, until the device is repaired."""
        self.leftovers[index] = None

    def _living(self) -> list[SimulatedProcess]:
        now_ms = self.now_ms()
        return [process for process in self._processes.values() if process.settle(now_ms) is None]

    def _finish(self, process: SimulatedProcess, cause: Cause, message: str) -> None:
        process.finish(ProcessEnd(self.now_ms(), "failed", cause, KILLED, message))
        self.keep(process.key)
        self.touch(process.key)

    def _state(self, index: int) -> DeviceState:
        if index in self.broken:
            return DeviceState.BROKEN
        if index in self.leftovers and not any(index in process.devices for process in self._living()):
            return DeviceState.HELD
        return DeviceState.OK


def ready_moment(began_ms: int, terms: StartFault, ready_after_ms: int) -> int | None:
    """When a start becomes ready by its terms; None = never."""
    if terms.hangs or terms.fails_after_ms is not None or ready_after_ms == NEVER:
        return None
    return began_ms + (START_MS if terms.takes_ms is None else terms.takes_ms) + ready_after_ms
