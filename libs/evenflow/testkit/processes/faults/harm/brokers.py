"""Three brokers, of which one or all are killed or stand still."""

from __future__ import annotations

import signal
from typing import Final

from evenflow.testkit.processes.faults.harm.row import AWAY_S, STAND_S, Row
from evenflow.testkit.processes.faults.world import World

LOG: Final = "kafka-cluster"


def _killed(node: int) -> Row:
    async def do(world: World) -> None:
        async with world.traffic():
            await world.servers.kill(f"{LOG}/{node}")
            await world.clock.sleep(AWAY_S)
            await world.servers.restart(LOG)

    return Row(f"broker {node + 1} of three is killed and away for {AWAY_S:.0f} s", "brokers", do, brief=False, log=LOG)


def _stands(node: int) -> Row:
    async def do(world: World) -> None:
        running = world.servers.running[f"{LOG}/{node}"]
        async with world.traffic():
            running.tell(signal.SIGSTOP)
            await world.clock.sleep(STAND_S)
            running.tell(signal.SIGCONT)

    return Row(f"broker {node + 1} of three stands still for {STAND_S:.0f} s", "brokers", do, brief=False, log=LOG)


async def _one_after_another(world: World) -> None:
    async with world.traffic():
        for node in range(3):
            await world.servers.kill(f"{LOG}/{node}")
            await world.servers.restart(LOG)


async def _all(world: World) -> None:
    await world.servers.kill(LOG)
    await world.clock.sleep(AWAY_S)
    await world.servers.restart(LOG)


async def _decider_too(world: World) -> None:
    async with world.traffic():
        world.services["placement"].tell(signal.SIGKILL)
        await world.servers.kill(f"{LOG}/0")
        await world.clock.sleep(AWAY_S)
        await world.servers.restart(LOG)


BROKER_ROWS: Final[tuple[Row, ...]] = (
    *(_killed(node) for node in range(3)),
    *(_stands(node) for node in range(3)),
    Row("each of three brokers is killed in turn", "brokers", _one_after_another, brief=False, log=LOG),
    Row("a broker and placement are killed at once", "brokers", _decider_too, brief=False, log=LOG),
    Row("all three brokers are killed", "brokers", _all, brief=False, log=LOG),
)
