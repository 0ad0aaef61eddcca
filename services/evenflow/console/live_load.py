"""Nodes' live load from the packed frames that inventory writes, each reading with its age."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import EvenflowError
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.probing.load_frame import LoadFrame, unpack
from evenflow.platform.runtime import Runtime

#: Frames are read at most this often, however many ask.
FRESH_MS: Final = 250
_STATES: Final = tuple(DeviceState)


class LiveView:
    """The newest load of every node, kept for a moment."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rows: dict[str, dict[str, Any]] = {}
        self._read_ms: int | None = None

    async def rows(self) -> dict[str, dict[str, Any]]:
        """Load by node; empty when the store is away, since load is a view and nothing rests on it."""
        clock = self._runtime.clock
        now_ms = clock.monotonic_ms()
        if self._read_ms is None or now_ms - self._read_ms >= FRESH_MS:
            self._read_ms = now_ms
            try:
                live = self._runtime.live
                frames = await live.frames(await live.sites())
                self._rows = {}
                for _, _, data in frames.values():
                    self._rows |= frame_rows(unpack(data))
            except (EvenflowError, ValueError) as error:
                self._runtime.log.warning("live load not read", problem=str(error))
                self._rows = {}
        wall_ms = clock.now_ms()
        return {name: {**row, "age_ms": max(0, wall_ms - row["time_ms"])} for name, row in self._rows.items()}


def frame_rows(frame: LoadFrame) -> dict[str, dict[str, Any]]:
    """A frame's nodes by name."""
    rows: dict[str, dict[str, Any]] = {}
    firsts = [int(first) for first in frame.nodes["first"]] + [len(frame.devices)]
    for index, name in enumerate(frame.names[: len(frame.nodes)]):
        node = frame.nodes[index]
        devices = frame.devices[firsts[index] : firsts[index + 1]]
        rows[name] = {
            "time_ms": int(node["time_ms"]),
            "cpu_used_milli": int(node["cpu_used_milli"]),
            "memory_used_bytes": int(node["memory_used_bytes"]),
            "running_count": int(node["running"]),
            "devices": [
                {
                    "used_milli": int(device["used_milli"]),
                    "utilisation_milli": int(device["utilisation_milli"]),
                    "memory_used_bytes": int(device["memory_used_bytes"]),
                    "state": _state(int(device["state"])),
                }
                for device in devices
            ],
        }
    return rows


def _state(number: int) -> str:
    return str(_STATES[number]) if number < len(_STATES) else "unknown"
