"""The real links between sites: who can reach whom, how fast, and how transfers share them.

Transfers on one link share it evenly; over several links the narrowest share counts; the path is the chain of least
time. A link or site that is cut carries nothing; what was under way stalls and breaks off after a while.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import PROCESS, Process

#: Stall after which a transfer breaks off, in seconds.
STALL_S: Final = 10.0
#: Bytes whose time decides which path is the fastest.
_TYPICAL_BYTES: Final = 10**9
#: A flow below this is done: rounding of shares.
_NOTHING: Final = 1.0
#: A rest that would arrive within the clock's own rounding must still move time on.
_SHORTEST_S: Final = 1e-6
_FAR: Final = 1e18


class Broken(Exception):
    """The transfer broke off."""


@dataclass(slots=True)
class RealLink:
    """One directed link as it really is."""

    source: str
    target: str
    bandwidth_bits: int
    round_trip_us: int
    loss_ppm: int = 0
    cut: bool = False
    flows: dict[int, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Flow:
    number: int
    path: list[RealLink]
    left_bits: float
    done: asyncio.Future[None]
    owner: Process | None
    rate: float = 0.0
    stalled_s: float | None = None


class Links:
    """All links of the world. `world` is the context of timers: they must outlive the process that caused them."""

    def __init__(self, loop: VirtualLoop, world: contextvars.Context) -> None:
        self._loop = loop
        self._world = world
        self._links: dict[tuple[str, str], RealLink] = {}
        self._flows: dict[int, _Flow] = {}
        self._number = 0
        self._advanced_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.cut_sites: dict[str, None] = {}

    def add(self, source: str, target: str, *, bandwidth_bits: int, round_trip_us: int, loss_ppm: int) -> None:
        """One directed link."""
        self._links[source, target] = RealLink(source, target, bandwidth_bits, round_trip_us, loss_ppm)

    def change(self, source: str, target: str, changes: Mapping[str, Any]) -> None:
        """Change bandwidth (bits per second), round trip (ms) or loss (part) of a link, both ways if there are two."""
        for ends in ((source, target), (target, source)):
            link = self._links.get(ends)
            if link is not None:
                link.bandwidth_bits = changes.get("bandwidth", link.bandwidth_bits)
                if "round_trip_ms" in changes:
                    link.round_trip_us = round(changes["round_trip_ms"] * 1000)
                if "loss" in changes:
                    link.loss_ppm = round(changes["loss"] * 1_000_000)
        self._replan()

    def cut(self, source: str, target: str, *, cut: bool) -> None:
        """Cut a link, both ways, or join it again."""
        for ends in ((source, target), (target, source)):
            if ends in self._links:
                self._links[ends].cut = cut
        self._replan()

    def cut_site(self, site: str, *, cut: bool) -> None:
        """Cut everything of a site, or join it again."""
        if cut:
            self.cut_sites[site] = None
        else:
            self.cut_sites.pop(site, None)
        self._replan()

    def join_all(self) -> None:
        """Every link and site carries again."""
        self.cut_sites.clear()
        for link in self._links.values():
            link.cut = False
        self._replan()

    def path(self, source: str, target: str) -> list[RealLink] | None:
        """The chain of least time, cut links left out; None when there is none."""
        best: dict[str, float] = {source: 0.0}
        via: dict[str, RealLink] = {}
        heap: list[tuple[float, str]] = [(0.0, source)]
        while heap:
            cost, site = heapq.heappop(heap)
            if site == target:
                break
            for link in self._links.values():
                if link.source != site or not self._carries(link):
                    continue
                total = cost + link.round_trip_us / 1e6 + _TYPICAL_BYTES * 8 / link.bandwidth_bits
                if total < best.get(link.target, _FAR):
                    best[link.target] = total
                    via[link.target] = link
                    heapq.heappush(heap, (total, link.target))
        if target not in via:
            return None
        chain: list[RealLink] = []
        while target != source:
            chain.append(via[target])
            target = via[target].source
        return chain[::-1]

    def _carries(self, link: RealLink) -> bool:
        return not link.cut and link.source not in self.cut_sites and link.target not in self.cut_sites

    async def carry(self, source: str, target: str, size_bytes: int) -> None:
        """Return when so many bytes have arrived. Raises Broken without a path, or after a stall."""
        if source == target or size_bytes <= 0:
            return
        path = self.path(source, target)
        if path is None:
            raise Broken(f"there is no path from {source} to {target}")
        self._number += 1
        done: asyncio.Future[None] = self._loop.create_future()
        flow = _Flow(self._number, path, size_bytes * 8.0, done, PROCESS.get())
        self._advance()
        self._flows[flow.number] = flow
        for link in path:
            link.flows[flow.number] = None
        self._replan()
        try:
            await done
        finally:
            self._remove(flow)
            self._replan()

    def _remove(self, flow: _Flow) -> None:
        self._flows.pop(flow.number, None)
        for link in flow.path:
            link.flows.pop(flow.number, None)

    def _advance(self) -> None:
        """Book what has arrived since the last change."""
        now = self._loop.time()
        elapsed, self._advanced_s = now - self._advanced_s, now
        for flow in list(self._flows.values()):
            if flow.owner is not None and flow.owner.dead:
                self._remove(flow)
            else:
                flow.left_bits -= flow.rate * elapsed

    def _replan(self) -> None:
        """Share the links anew and wait for the next thing that happens."""
        self._advance()
        now = self._loop.time()
        next_s = _FAR
        for flow in list(self._flows.values()):
            flow.rate = 0.0
            if flow.left_bits <= _NOTHING:
                if not flow.done.done():
                    flow.done.set_result(None)
                continue
            if all(self._carries(link) for link in flow.path):
                flow.rate = min(link.bandwidth_bits / max(1, len(link.flows)) for link in flow.path)
            if flow.rate > 0:
                flow.stalled_s = None
                next_s = min(next_s, now + max(_SHORTEST_S, flow.left_bits / flow.rate))
                continue
            flow.stalled_s = now if flow.stalled_s is None else flow.stalled_s
            if now >= flow.stalled_s + STALL_S and not flow.done.done():
                flow.done.set_exception(Broken("the path is cut"))
                continue
            next_s = min(next_s, flow.stalled_s + STALL_S)
        self._wait_until(next_s)

    def _wait_until(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if when < _FAR:
            run: Callable[[], None] = self._replan
            self._timer = self._loop.call_at(when, run, context=self._world)
