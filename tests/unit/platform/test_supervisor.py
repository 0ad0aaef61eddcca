"""The supervisor: order, restarts with growing pauses, bounded stops; on a clock that only the test moves."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from evenflow.core.errors import Ended, Refused, Unavailable
from evenflow.platform.supervisor import Exit, Patience, Supervisor


class Clock:
    """Sleeps end when the test moves time, in order of their times."""

    def __init__(self) -> None:
        self.now = 0
        self.sleeping: list[tuple[int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now

    async def sleep(self, seconds: float) -> None:
        future = asyncio.get_running_loop().create_future()
        self.sleeping.append((self.now + round(seconds * 1000), future))
        await future

    async def advance(self, seconds: float) -> None:
        """Let everything run, then move time from one waking to the next."""
        await settle()
        end = self.now + round(seconds * 1000)
        while True:
            self.sleeping = [(at, future) for at, future in self.sleeping if not future.done()]
            due = [(at, future) for at, future in self.sleeping if at <= end]
            if not due:
                break
            self.now, future = min(due, key=lambda pair: pair[0])
            future.set_result(None)
            await settle()
        self.now = end


async def settle() -> None:
    """Run the loop until nothing more happens without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


class Log:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def _line(self, event: str, **fields: Any) -> None:
        self.lines.append((event, fields))

    info = warning = error = _line


class World:
    """Services by name, their lives in order of happening, and what the next ones should do."""

    def __init__(self) -> None:
        self.clock, self.log = Clock(), Log()
        self.happened: list[str] = []
        self.endings: dict[str, asyncio.Future[None]] = {}
        self.patience = Patience(pause_min_s=1, pause_max_s=4, quiet_s=60, stop_s=5, start_s=10)
        self.supervisor = Supervisor(self.clock, self.log, self.patience)

    def add(self, name: str, *starts: Exception | str | None, stop: Exception | str | None = None) -> None:
        """A service whose first starts raise, or hang; later ones serve."""
        plan = list(starts)
        world = self

        class Fake:
            async def start(self) -> None:
                world.happened.append(f"start {name}")
                await _act(plan.pop(0) if plan else None)

            async def wait(self) -> None:
                world.endings[name] = asyncio.get_running_loop().create_future()
                await world.endings[name]

            async def stop(self) -> None:
                world.happened.append(f"stop {name}")
                await _act(stop)

        self.supervisor.add(name, Fake)

    def count(self, what: str) -> int:
        """How often it happened."""
        return self.happened.count(what)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Fields of every line of that name."""
        return [fields for name, fields in self.log.lines if name == event]


async def _act(what: Exception | str | None) -> None:
    if what == "hang":
        await asyncio.get_running_loop().create_future()
    elif what == "cling":  # to the first cancellation only, so that the test can end
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        await asyncio.get_running_loop().create_future()
    elif isinstance(what, Exception):
        raise what


@pytest.fixture
def world() -> World:
    return World()


async def test_services_start_in_order_and_stop_in_reverse(world: World) -> None:
    """Each starts after the one before serves, and outlives those that came after it."""
    for name in "abc":
        world.add(name)
    await world.supervisor.start()
    await world.supervisor.stop()
    await world.supervisor.wait()
    assert world.happened == ["start a", "start b", "start c", "stop c", "stop b", "stop a"]
    assert not world.supervisor.exits


async def test_a_service_that_ends_is_restarted_and_the_others_go_on(world: World) -> None:
    """By itself, by an error, by Ended with its own code, by a cancellation inside: each is logged and repaired."""
    world.add("a")
    world.add("b")
    await world.supervisor.start()
    await settle()
    world.endings["a"].set_result(None)
    await world.clock.advance(60)
    world.endings["a"].set_exception(ValueError("broken"))
    await world.clock.advance(60)
    world.endings["a"].set_exception(Ended("fenced", exit_code=41))
    await world.clock.advance(60)
    world.endings["a"].cancel()
    await world.clock.advance(60)
    assert [exit_.code for exit_ in world.supervisor.exits] == [0, 1, 41, 1]
    assert world.supervisor.exits[1] == Exit("a", 1, "ValueError: broken", 60_000)
    assert [fields["exit_code"] for fields in world.logged("service ended")] == [0, 1, 41, 1]
    assert world.count("start a") == 5
    assert world.count("stop a") == 4
    assert world.count("start b") == 1
    await world.supervisor.stop()


@pytest.mark.parametrize("at_start", [False, True])
async def test_where_an_end_is_final_the_process_ends_with_it(*, at_start: bool) -> None:
    """Other errors are still restarted; Ended comes out with its code, the others are stopped."""
    world = World()
    world.supervisor = Supervisor(world.clock, world.log, world.patience, ended_is_final=True)
    fenced = Ended("fenced", exit_code=3)
    world.add("a", None, *([fenced] if at_start else []))
    world.add("b")
    running = asyncio.create_task(world.supervisor.run(asyncio.Event()))
    await settle()
    world.endings["a"].set_exception(ValueError("broken"))
    await world.clock.advance(60)
    if not at_start:
        world.endings["a"].set_exception(fenced)
    await world.clock.advance(60)
    with pytest.raises(Ended, match="fenced"):
        await running
    assert [exit_.code for exit_ in world.supervisor.exits] == [1, 3]
    assert world.count("stop b") == 1
    assert [fields["exit_code"] for fields in world.logged("service ended for good")] == [3]


async def test_pauses_between_restarts_grow_to_a_bound_and_start_again_after_a_quiet_while(world: World) -> None:
    """1, 2, 4, 4 seconds; after a minute of service 1 again."""
    world.add("a")
    await world.supervisor.start()
    pauses = []
    for life_s in (0, 0, 0, 0, 61):
        await world.clock.advance(life_s)
        world.endings["a"].set_result(None)
        starts, began = world.count("start a"), world.clock.now
        while world.count("start a") == starts:
            await world.clock.advance(0.1)
        pauses.append((world.clock.now - began) / 1000)
    assert pauses == [1, 2, 4, 4, 1]
    await world.supervisor.stop()


async def test_a_start_that_fails_or_hangs_is_tried_again(world: World) -> None:
    """A server may not be up yet; what was started halfway is let go of."""
    world.add("a", Unavailable("no broker"), "hang")
    world.add("b")
    starting = asyncio.create_task(world.supervisor.start())
    await world.clock.advance(1.5)
    assert world.happened == ["start a", "stop a", "start a"]
    await world.clock.advance(13)
    await starting
    assert world.happened == ["start a", "stop a", "start a", "stop a", "start a", "start b"]
    assert [exit_.reason for exit_ in world.supervisor.exits] == [
        "Unavailable: no broker",
        "TimeoutError: did not start within 10 s",
    ]
    await world.supervisor.stop()


async def test_a_service_that_refuses_at_first_start_stops_all(world: World) -> None:
    """Wrong settings do not get better by trying again."""
    world.add("a")
    world.add("b", Refused("wrong settings"))
    world.add("c")
    with pytest.raises(Refused, match="wrong settings"):
        await world.supervisor.start()
    assert world.happened == ["start a", "start b", "stop b", "stop a"]


async def test_a_service_that_refuses_to_start_again_ends_the_wait(world: World) -> None:
    """So that the process ends visibly instead of serving half."""
    world.add("a", None, Refused("file gone"))
    await world.supervisor.start()
    await settle()
    waiting = asyncio.create_task(world.supervisor.wait())
    world.endings["a"].set_result(None)
    await world.clock.advance(2)
    with pytest.raises(Refused, match="file gone"):
        await waiting
    await world.supervisor.stop()


async def test_a_service_that_cant_be_made_is_an_end_like_any_other(world: World) -> None:
    """An error in the factory is logged and tried again; Refused is final."""
    made: list[Exception] = [OSError("disk"), Refused("never")]

    def make() -> Any:
        raise made.pop(0)

    world.supervisor.add("a", make)
    starting = asyncio.create_task(world.supervisor.start())
    await world.clock.advance(2)
    with pytest.raises(Refused, match="never"):
        await starting
    assert [exit_.reason for exit_ in world.supervisor.exits] == ["OSError: disk", "Refused: never"]


@pytest.mark.parametrize(
    ("stop", "seconds", "line"),
    [("hang", 5, "service cut off"), ("cling", 6, "service cut off"), (ValueError("x"), 0, "service stopped badly")],
)
async def test_a_stop_that_hangs_or_fails_is_bounded_and_the_rest_is_stopped(
    world: World, stop: Exception | str, seconds: float, line: str
) -> None:
    """Even one that swallows its cancellation."""
    world.add("a")
    world.add("b", stop=stop)
    await world.supervisor.start()
    stopping = asyncio.create_task(world.supervisor.stop())
    await world.clock.advance(seconds)
    assert stopping.done()
    assert world.happened[-2:] == ["stop b", "stop a"]
    assert [fields["service_name"] for fields in world.logged(line)] == ["b"]


@pytest.mark.parametrize("phase", ["starting", "pausing"])
async def test_a_stop_ends_a_start_or_a_pause_under_way(world: World, phase: str) -> None:
    """Without waiting for its end."""
    world.add("a", "hang" if phase == "starting" else Unavailable("no broker"))
    world.add("b")
    starting = asyncio.create_task(world.supervisor.start())
    await settle()
    await world.supervisor.stop()
    await starting
    assert world.happened == ["start a", "stop a"]
    await world.supervisor.stop()


async def test_run_serves_until_told_and_then_stops(world: World) -> None:
    """The composition root's one call."""
    world.add("a")
    until = asyncio.Event()
    running = asyncio.create_task(world.supervisor.run(until))
    await world.clock.advance(100)
    assert not running.done()
    until.set()
    await running
    assert world.happened == ["start a", "stop a"]


async def test_run_raises_what_a_service_refuses_with(world: World) -> None:
    """After stopping the others."""
    world.add("a")
    world.add("b", None, Refused("file gone"))
    running = asyncio.create_task(world.supervisor.run(asyncio.Event()))
    await settle()
    world.endings["b"].set_result(None)
    await world.clock.advance(2)
    with pytest.raises(Refused, match="file gone"):
        await running
    assert world.happened[-1] == "stop a"


def test_a_name_is_used_once(world: World) -> None:
    """Else exits could not be told apart."""
    world.add("a")
    with pytest.raises(ValueError, match="added already"):
        world.add("a")


async def test_nothing_is_left_running_after_a_stop(world: World) -> None:
    """No task of the supervisor or of a service outlives it."""
    before = asyncio.all_tasks()
    for name in "abc":
        world.add(name)
    await world.supervisor.start()
    await settle()
    world.endings["b"].set_result(None)
    await world.clock.advance(0.5)
    await world.supervisor.stop()
    await settle()
    assert asyncio.all_tasks() == before
