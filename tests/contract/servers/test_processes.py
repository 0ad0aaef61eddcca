"""Servers as processes: ports tried before use, stopped by their ids, killed when they do not listen."""

from __future__ import annotations

import signal
import socket
import sys

from evenflow.platform.clock import SystemClock
from evenflow.testkit.servers.engine import engine_answers
from evenflow.testkit.servers.process import Running, free_ports, is_free, spawn, stop

FOR_EVER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def test_an_engine_that_nobody_runs_does_not_answer(tmp_path, monkeypatch):
    """Proves that a socket without a listener, a wrong host and a closed port are all a plain no."""
    for host in (f"unix://{tmp_path}/none.sock", "tcp://127.0.0.1:1"):
        monkeypatch.setenv("DOCKER_HOST", host)
        assert not engine_answers()


def test_a_port_that_is_taken_is_not_given(monkeypatch):
    """Proves that ports are tried before they are given, and that none is given twice."""
    with socket.socket() as taken:
        first = free_ports(1)[0]
        taken.bind(("127.0.0.1", first))
        taken.listen()
        assert not is_free(first)
        assert first not in free_ports(5)
    assert len(set(free_ports(20))) == 20


async def test_a_process_is_stopped_by_its_id_and_killed_when_it_does_not_listen(tmp_path):
    """Proves a clean stop, the insistence after its time, and that the name of what was killed is said."""
    kind, clock = spawn("kind", FOR_EVER, tmp_path / "kind.log", tied=True), SystemClock()
    deaf_program = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    deaf = spawn("deaf", [sys.executable, "-c", deaf_program], tmp_path / "deaf.log", tied=True)
    while "up" not in deaf.said():
        await clock.sleep(0.01)
    assert (kind.lives, deaf.lives) == (True, True)
    assert await stop([kind, deaf], clock, within_s=0.5) == ["deaf"]
    assert (kind.lives, deaf.lives) == (False, False)


async def test_an_id_that_another_program_has_by_now_is_left_alone(tmp_path):
    """Proves that a process is known by its id and its beginning: a later one of the same id is never signalled."""
    mine = spawn("mine", FOR_EVER, tmp_path / "mine.log", tied=True)
    stranger = Running("stranger", mine.pid, mine.ticks - 1, tmp_path / "mine.log")
    assert not stranger.lives
    stranger.tell(signal.SIGKILL)
    assert await stop([stranger], SystemClock(), within_s=0.1) == []
    assert mine.lives
    same = Running("same", mine.pid, mine.ticks, tmp_path / "mine.log")
    assert same.lives
    await stop([mine], SystemClock(), within_s=5)
    assert not same.lives
