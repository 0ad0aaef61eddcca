"""Work in many processes: answers whatever the order, deaths and hangs that are answers too, and nobody left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenflow.sim.explore.jobs import FAILED, spread

WORK = '''
"""Pieces of work that behave, die or hang as they are asked."""

import os
import time


def work(asked, tell):
    if asked.get("waits_s"):
        time.sleep(asked["waits_s"])
    while time.process_time() < asked.get("burns_s", 0):
        pass
    if asked.get("dies"):
        os._exit(asked["dies"])
    for turn in range(asked.get("speaks", 0)):
        tell(f"turn {turn}")
        time.sleep(0.3)
    return {"twice": asked["number"] * 2, "process": os.getpid()}
'''


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A function that worker processes can import."""
    (tmp_path / "pieces_of_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield __import__("pieces_of_work").work
    sys.modules.pop("pieces_of_work", None)


def alive(process: int) -> bool:
    """Whether a process still runs."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def test_every_piece_of_work_is_answered_once_by_as_many_processes_as_asked(work):
    """Proves that answers stay with what was asked, and that processes are used again."""
    answers = list(spread(work, ({"number": number} for number in range(8)), jobs=2))
    assert sorted((asked["number"], answer["twice"]) for asked, answer in answers) == [(n, 2 * n) for n in range(8)]
    assert len({answer["process"] for _, answer in answers}) <= 2


def test_a_process_that_dies_or_hangs_is_a_failed_answer_and_the_others_go_on(work):
    """Proves that neither an exit nor silence stops the work; one that speaks now and then is not taken for hanging."""
    asked = [{"number": 1, "dies": 9}, {"number": 2, "waits_s": 600}, {"number": 3, "speaks": 12}, {"number": 4}]
    said: list[str] = []
    answers = {row["number"]: answer for row, answer in spread(work, iter(asked), jobs=2, limit_s=3, tell=said.append)}
    assert answers[1][FAILED] == "died: its process ended with 9"
    assert answers[2][FAILED] == "hangs: no end within 3 s"
    assert (answers[3]["twice"], answers[4]["twice"]) == (6, 8)
    assert said == [f"turn {turn}" for turn in range(12)]


def test_work_that_goes_on_for_ever_hangs_by_the_processor_time_it_took(work):
    """Proves that a busy loop ends at the limit, long before the patience for one that merely waits."""
    begun_s = time.monotonic()
    (answer,) = [answer for _, answer in spread(work, iter([{"number": 1, "burns_s": 600}]), jobs=1, limit_s=2)]
    assert answer[FAILED] == "hangs: no end within 2 s"
    assert time.monotonic() - begun_s >= 2


def test_leaving_early_ends_every_process(work):
    """Proves that a closed loop over answers leaves nobody behind, busy or not."""
    answers = spread(work, iter([{"number": 1}, {"number": 2, "waits_s": 600}]), jobs=2)
    _, first = next(answers)
    assert alive(first["process"])
    answers.close()
    assert not alive(first["process"])


def test_an_interrupt_ends_all_processes(tmp_path):
    """Proves that Ctrl-C, which reaches the whole group, ends the command with 130 and its workers with it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = ["simulate", "explore", "--seeds", "0:1000", "--jobs", "2", "--keep-going", "--out", str(tmp_path)]
    command = subprocess.Popen(
        [sys.executable, "-m", "evenflow.cli", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        workers = _children(command.pid)
        os.killpg(command.pid, signal.SIGINT)
        _, said = command.communicate(timeout=120)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(command.pid, signal.SIGKILL)
    assert command.returncode == 130
    assert "Traceback" not in said
    for _ in range(100):  # the one that keeps account of the others ends when it sees them gone
        if not any(map(alive, workers)):
            break
        time.sleep(0.1)
    assert [worker for worker in workers if alive(worker)] == []


def _children(parent: int) -> list[int]:
    """The processes that a command started, once there are two workers beside the one that keeps account of them."""
    for _ in range(300):
        found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        if len(found) >= 3:
            time.sleep(1)
            return [int(child) for child in found]
        time.sleep(0.1)
    raise AssertionError("no workers were started")
