"""Services and agents killed, killed at their fail points, standing still, joining and leaving."""

from __future__ import annotations

import signal
from typing import Final

from evenflow.hosting.registry import SERVICES
from evenflow.testkit.processes.faults.harm.row import AWAY_S, PAUSE_S, STAND_S, Row
from evenflow.testkit.processes.faults.world import World

#: Fail points that the flow of tasks reaches in every service.
PUBLISHERS: Final = ("inventory", "billing", "gateway", "console")
#: Services of which every copy works, on partitions of its own.
SHARED: Final = ("billing", "console", "checkpoint")


def _killed(service: str) -> Row:
    async def do(world: World) -> None:
        world.services[service].tell(signal.SIGKILL)

    return Row(f"{service} is killed", "service", do)


def _killed_at(point: str, nth: int, *, brief: bool = True) -> Row:
    service = point.partition(".")[0]

    async def do(world: World) -> None:
        async with world.traffic():
            await world.services[service].kill_at(point, nth)

    return Row(f"{service} is killed {point.partition('.')[2].replace('-', ' ')} ({nth})", "fail point", do, brief)


def _killed_twice(point: str) -> Row:
    """At the start that follows a kill: points of taking over."""
    service = point.partition(".")[0]

    async def do(world: World) -> None:
        kept = world.services[service]
        async with world.traffic():
            kept.tell(signal.SIGKILL)
            await kept.kill_at_next_start(point)

    return Row(f"{service} is killed, and again {point.partition('.')[2].replace('-', ' ')}", "fail point", do)


def _stands(service: str, stand_s: float, *, brief: bool) -> Row:
    async def do(world: World) -> None:
        kept = world.services[service]
        kept.tell(signal.SIGSTOP)
        await world.clock.sleep(stand_s)
        kept.tell(signal.SIGCONT)

    return Row(f"{service} stands still for {stand_s:.0f} s", "pause", do, brief)


def _another(service: str, number: signal.Signals, *, brief: bool) -> Row:
    """Partitions move from one copy to another while both have batches in hand, and back."""

    async def do(world: World) -> None:
        async with world.traffic():
            one = await world.start_another(service)
            await world.clock.sleep(PAUSE_S)
            await world.end(one, number)

    how = "is killed" if number is signal.SIGKILL else "leaves"
    return Row(f"another {service} joins and {how} under load", "rebalance", do, brief)


async def _deciders_in_a_batch(world: World) -> None:
    """Field case R43: while tasks come the leader stands still past its session, a third joins, the new leader dies."""
    async with world.traffic():
        second = await world.start_another("placement")
        first = world.services["placement"]
        first.tell(signal.SIGSTOP)
        await world.clock.sleep(AWAY_S)
        first.tell(signal.SIGCONT)
        third = await world.start_another("placement")
        await first.ready()
        await world.end(second, signal.SIGKILL)
        await world.clock.sleep(AWAY_S)
    await world.end(third, signal.SIGTERM)


async def _kill_nodes(world: World) -> None:
    assert world.nodes is not None
    world.nodes.running.tell(signal.SIGKILL)
    await world.clock.sleep(AWAY_S)
    world.start_nodes()


async def _kill_all(world: World) -> None:
    for kept in world.services.values():
        kept.tell(signal.SIGKILL)


async def _kill_deciders(world: World) -> None:
    for service in ("placement", "inventory", "link-probe"):
        world.services[service].tell(signal.SIGKILL)


SERVICE_ROWS: Final[tuple[Row, ...]] = (
    *(_killed(service) for service in SERVICES),
    *(_killed_at(f"placement.{point}-round-commit", 1) for point in ("before", "after")),
    _killed_at("placement.before-image", 1),
    _killed_at("placement.after-image", 1, brief=False),
    *(_killed_twice(f"placement.{point}") for point in ("after-fence-0", "after-fence", "after-restore")),
    _killed_at("billing.before-commit", 1),
    _killed_at("billing.after-commit", 1),
    *(_killed_at(f"{service}.before-publish", 1, brief=service in ("billing", "gateway")) for service in PUBLISHERS),
    *(_killed_at(f"{service}.after-publish", 1, brief=service in ("billing", "gateway")) for service in PUBLISHERS),
    Row("all services are killed at once", "service", _kill_all),
    Row("those that work alone are killed at once", "service", _kill_deciders),
    Row("the nodes' agents are killed and away for 4 s", "agent", _kill_nodes),
    Row("R43: deciders stand still, join and are killed in a batch", "rebalance", _deciders_in_a_batch),
    *(_another(service, signal.SIGTERM, brief=service == "billing") for service in SHARED),
    *(_another(service, signal.SIGKILL, brief=False) for service in SHARED),
    *(_stands(service, STAND_S, brief=service in ("placement", "billing")) for service in SERVICES),
    *(_stands(service, PAUSE_S, brief=False) for service in SERVICES),
    *(
        _killed_at(f"placement.{point}-round-commit", nth, brief=False)
        for point in ("before", "after")
        for nth in (3, 7, 20)
    ),
    *(_killed_at(f"billing.{point}-commit", nth, brief=False) for point in ("before", "after") for nth in (3, 9)),
    *(
        _killed_at(f"{service}.{when}-publish", nth, brief=False)
        for service in PUBLISHERS
        for when in ("before", "after")
        for nth in (2, 5)
    ),
)
