"""The network between one service and one server: cut, so that neither hears of it, and slow."""

from __future__ import annotations

from typing import Final

from evenflow.testkit.processes.faults.harm.row import AWAY_S, STAND_S, Row
from evenflow.testkit.processes.faults.ways import RELAYED
from evenflow.testkit.processes.faults.world import World

SLOW_MS: Final = 100
NAMES: Final = {"log": "the log", "redis": "Redis", "documents": "the documents", "objects": "the objects"}


def _cut(service: str, kind: str, cut_s: float, *, brief: bool) -> Row:
    async def do(world: World) -> None:
        async with world.traffic():
            world.ways.cut(service, kind)
            await world.clock.sleep(cut_s)
            world.ways.heal(service, kind)

    return Row(f"{service} is cut off from {NAMES[kind]} for {cut_s:.0f} s", "network", do, brief)


def _slow(service: str, kind: str, *, brief: bool) -> Row:
    async def do(world: World) -> None:
        async with world.traffic():
            world.ways.slow(service, kind, SLOW_MS)
            await world.clock.sleep(STAND_S)
            world.ways.heal(service, kind)

    return Row(f"{service} hears {NAMES[kind]} {SLOW_MS} ms late for {STAND_S:.0f} s", "network", do, brief)


WAY_ROWS: Final[tuple[Row, ...]] = (
    _cut(RELAYED, "log", STAND_S, brief=True),
    _cut(RELAYED, "log", AWAY_S / 2, brief=False),
    _slow(RELAYED, "log", brief=True),
    _cut(RELAYED, "redis", AWAY_S, brief=False),
    _cut("inventory", "redis", STAND_S, brief=True),
    _cut("inventory", "documents", STAND_S, brief=False),
    _cut("billing", "documents", STAND_S, brief=True),
    _cut("gateway", "documents", STAND_S, brief=False),
    _cut("console", "documents", STAND_S, brief=False),
    _cut("console", "objects", STAND_S, brief=False),
    _cut("checkpoint", "objects", STAND_S, brief=True),
    _cut(RELAYED, "objects", STAND_S, brief=False),
    _slow("checkpoint", "objects", brief=False),
)
