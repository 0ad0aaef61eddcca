"""Power over what happens on machines: starts, processes, devices, sensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from evenflow.agent.executors.machine import StartFault as MachineFault
from evenflow.sim.stage import StartFault

if TYPE_CHECKING:
    from evenflow.sim.world.powers.fleet import Fleet


class MachinePowers:
    """Acts on the fleet's machines; what is about a task holds on every machine, also on later ones."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def start_fault(self, fault: StartFault) -> None:
        """From now on starts go so."""
        if fault.node is not None:
            self._fleet.machine(fault.node).start_faults.insert(0, _fault(fault))
            return
        # A count is one count over the whole fleet, so every machine holds the same object.
        shared = _fault(fault)
        self._fleet.on_every_machine(lambda machine: machine.start_faults.insert(0, shared))

    async def kill_process(self, task: str, member: int) -> None:
        """A member's process is gone, wherever it runs."""
        for machine in self._fleet.machines():
            machine.kill_process(task, member)

    async def stop_takes(self, task: str, duration_ms: int) -> None:
        """Its stop takes long."""

        def slow(machine: Any) -> None:
            machine.stop_times_ms[task] = duration_ms

        self._fleet.on_every_machine(slow)

    async def device(self, node: str, index: int, change: Literal["break", "repair", "leftover"]) -> None:
        """One device breaks, works again, or keeps a process."""
        machine = self._fleet.machine(node)
        match change:
            case "break":
                machine.break_device(index)
            case "repair":
                machine.repair_device(index)
            case _:
                machine.leave_leftover(index)

    async def telemetry(self, node: str, readings: Mapping[str, Any] | None, *, silent: bool) -> None:
        """What its sensors say."""
        machine = self._fleet.machine(node)
        machine.silent = silent
        if readings is not None:
            machine.raw_readings = dict(readings)

    def end_all(self) -> None:
        """Start faults and leftovers end."""
        self._fleet.forget_rules()
        for machine in self._fleet.machines():
            machine.start_faults.clear()
            machine.leftovers.clear()
            machine.silent = False


def _fault(fault: StartFault) -> MachineFault:
    return MachineFault(
        task=fault.task or "",
        member=fault.member,
        takes_ms=fault.takes_ms,
        fails_after_ms=fault.fails_after_ms,
        hangs=fault.hangs,
        left=fault.times,
    )
