"""The machine this agent runs on: its boot, its load; data between sites goes through the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenflow.agent.executors.process import uptime_ms
from evenflow.agent.executors.process_table import boot_id
from evenflow.agent.ports import Sample, TransferBroken
from evenflow.core.lifecycle.node import DeviceState
from evenflow.platform.clock import Clock

KIB = 1024


class LocalMachine:
    """Linux by its /proc."""

    def __init__(self, clock: Clock) -> None:
        self._boot = boot_id()
        self._booted_ms = max(0, clock.now_ms() - uptime_ms())

    @property
    def boot(self) -> str:
        """The kernel's name of this boot."""
        return self._boot

    @property
    def booted_ms(self) -> int:
        """Wall clock of the boot."""
        return self._booted_ms

    def device_states(self) -> Sequence[DeviceState]:
        """Nothing is known against any device."""
        return ()

    def readings(self) -> Mapping[str, Any] | None:
        """Processor load and memory in use, where the kernel says."""
        found: dict[str, int] = {}
        try:
            load = Path("/proc/loadavg").read_text(encoding="ascii").split()[0]
            found["cpu_used_milli"] = round(float(load) * 1000)
            rows = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
            memory = {row.partition(":")[0]: int(row.split()[1]) * KIB for row in rows if row.endswith("kB")}
            found["memory_used_bytes"] = max(0, memory["MemTotal"] - memory["MemAvailable"])
        except (OSError, ValueError, KeyError, IndexError):
            pass
        return found

    async def holds(self, dataset: str) -> bool:
        """A task of this node looks for its data itself."""
        return True

    async def transfer(
        self, what: str, *, from_site: str, to_site: str, size_bytes: int, counted: Callable[[int], None]
    ) -> None:
        """Checkpoints and output are moved by the store itself; datasets have to be at the site already."""
        if what == "output" or what.startswith("checkpoint-"):
            counted(size_bytes)
            return
        raise TransferBroken(f"dataset {what} is not at {to_site}, and this node can't fetch it from {from_site}")

    async def probe(self, to_site: str, size_bytes: int) -> Sample | None:
        """This agent knows no address at other sites."""
        return None
