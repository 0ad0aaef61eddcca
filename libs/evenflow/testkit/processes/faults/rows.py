"""The faults: each row does one and returns when it is over; whether all is well again is seen from outside."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from evenflow.hosting.registry import SERVICES
from evenflow.platform.stores.factory import open_documents, open_live
from evenflow.testkit.processes.faults.world import World

#: Longer than the sessions of this world (3 s), and shorter.
STAND_S: Final = 8.0
PAUSE_S: Final = 2.0
AWAY_S: Final = 4.0

Do = Callable[[World], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Row:
    """One fault. `group` is what it is about; `brief` rows are those of every run."""

    name: str
    group: str
    do: Do
    brief: bool = True


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
        await _stand(world, service, stand_s)

    return Row(f"{service} stands still for {stand_s:.0f} s", "pause", do, brief)


async def _stand(world: World, service: str, stand_s: float) -> None:
    kept = world.services[service]
    kept.tell(signal.SIGSTOP)
    await world.clock.sleep(stand_s)
    kept.tell(signal.SIGCONT)


def _server_killed(kind: str, *, away_s: float = 0.0) -> Row:
    async def do(world: World) -> None:
        await world.servers.kill(kind)
        await world.clock.sleep(away_s)
        await world.servers.restart(kind)

    return Row(f"{kind} is killed" + (f" and away for {away_s:.0f} s" if away_s else ""), "server", do)


def _server_stands(kind: str, stand_s: float, *, brief: bool = True) -> Row:
    async def do(world: World) -> None:
        running = world.servers.running[kind]
        running.tell(signal.SIGSTOP)
        await world.clock.sleep(stand_s)
        running.tell(signal.SIGCONT)

    return Row(f"{kind} stands still for {stand_s:.0f} s", "server", do, brief)


async def _wipe_live(world: World) -> None:
    live = open_live(world.servers.servers["redis"].url())
    await live.clear()
    await live.close()


async def _wipe_documents(world: World) -> None:
    documents = open_documents(world.servers.servers["documents"].url())
    for collection in ("nodes", "links", "datasets", "tasks", "ledger"):
        await documents.drop(collection)
    await documents.close()


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


#: Fail points that the flow of tasks reaches in every service.
PUBLISHERS: Final = ("inventory", "billing", "gateway", "console")

ROWS: Final[tuple[Row, ...]] = (
    *(_killed(service) for service in SERVICES),
    *(_killed_at(f"placement.{point}-round-commit", nth) for point in ("before", "after") for nth in (1, 3)),
    _killed_at("placement.before-image", 1),
    _killed_at("placement.after-image", 1),
    *(_killed_twice(f"placement.{point}") for point in ("after-fence-0", "after-fence", "after-restore")),
    _killed_at("billing.before-commit", 1),
    _killed_at("billing.after-commit", 1),
    *(_killed_at(f"{service}.{when}-publish", 1) for service in PUBLISHERS for when in ("before", "after")),
    Row("all services are killed at once", "service", _kill_all),
    Row("those that work alone are killed at once", "service", _kill_deciders),
    Row("the nodes' agents are killed and away for 4 s", "agent", _kill_nodes),
    _server_killed("kafka"),
    _server_killed("redis"),
    _server_killed("documents"),
    _server_killed("objects"),
    _server_killed("redis", away_s=AWAY_S),
    _server_killed("documents", away_s=AWAY_S),
    _server_stands("kafka", PAUSE_S),
    Row("Redis is wiped", "store", _wipe_live),
    Row("the documents are wiped", "store", _wipe_documents),
    *(_stands(service, STAND_S, brief=service in ("placement", "billing")) for service in SERVICES),
    *(_stands(service, PAUSE_S, brief=False) for service in SERVICES),
    _server_killed("kafka", away_s=STAND_S),
    _server_stands("kafka", STAND_S, brief=False),
    _server_stands("documents", PAUSE_S, brief=False),
    _server_stands("redis", PAUSE_S, brief=False),
    *(
        _killed_at(f"placement.{point}-round-commit", nth, brief=False)
        for point in ("before", "after")
        for nth in (7, 20)
    ),
    *(_killed_at(f"billing.{point}-commit", nth, brief=False) for point in ("before", "after") for nth in (3, 9)),
    *(
        _killed_at(f"{service}.{when}-publish", nth, brief=False)
        for service in PUBLISHERS
        for when in ("before", "after")
        for nth in (2, 5)
    ),
)
