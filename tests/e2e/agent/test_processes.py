"""Real programs under the process executor: stopped, killed, found again, saved and resumed."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.agent.executors.process import ProcessExecutor
from evenflow.agent.executors.process_table import belonging_to, entry_of
from evenflow.agent.executors.run_folder import Noted, RunFolder
from evenflow.agent.ports import Ended, Launch, Ready, Saved, StartFailed
from evenflow.core.demand.task import CheckpointWish, Task
from evenflow.core.lifecycle.causes import Cause
from evenflow.platform.clock import SystemClock
from evenflow.platform.stores.memory import MemoryObjects

KEY = "default/t1/1/0"


class Quiet:
    """A log nobody reads."""

    def debug(self, event: str, **fields: object) -> None:
        pass

    info = warning = error = debug


def _launch(*command: str, key: str = KEY, **more: Any) -> Launch:
    task = Task("default", "t1", command=command, checkpoint=CheckpointWish(every_ms=None))
    return Launch(key, "default", task, 1, 0, 1, (0, 1), 1000, 2**30, **more)


def _python(body: str, **more: Any) -> Launch:
    return _launch(sys.executable, "-c", body, **more)


def _executor(tmp_path: Path, objects: Any = None, boot: str = "") -> ProcessExecutor:
    return ProcessExecutor(tmp_path, SystemClock(), objects=objects, log=Quiet(), boot=boot)


async def _until(run: Any, kind: type) -> Any:
    async with asyncio.timeout(10):
        while True:
            event = await run.next()
            if isinstance(event, kind):
                return event


@pytest.fixture(autouse=True)
def nothing_stays():
    """Kill whatever a failing test would leave behind."""
    yield
    for entry in belonging_to(KEY, None):
        os.kill(entry.pid, signal.SIGKILL)


async def test_a_program_succeeds_and_its_output_and_surroundings_are_right(tmp_path):
    """Proves start, readiness, the told environment, exit code, log chunks and the reclaim of a plain run."""
    objects = MemoryObjects()
    executor = _executor(tmp_path, objects)
    launch = _launch("sh", "-c", 'echo "$EVENFLOW_TASK $EVENFLOW_ATTEMPT $EVENFLOW_MEMBER $EVENFLOW_DEVICES"; pwd')
    run = await executor.start(launch)
    assert isinstance(await _until(run, Ready), Ready)
    ended = await _until(run, Ended)
    assert (ended.ended_as, ended.exit_code, ended.ready) == ("succeeded", 0, True)
    paths = await objects.paths("logs/default/t1/a1/m0/")
    assert paths == ["logs/default/t1/a1/m0/000000000000"]
    assert (await objects.get(paths[0])).decode().splitlines() == [
        "t1 1 0 0,1",
        str(RunFolder(tmp_path, KEY).path / "work"),
    ]
    assert await executor.reclaim(launch)
    assert not RunFolder(tmp_path, KEY).path.exists()


async def test_exit_codes_and_signals_become_causes(tmp_path):
    """Proves that a program's own error, a crash and a kill from outside are told apart."""
    executor = _executor(tmp_path)
    found = []
    for number, body in enumerate(("exit 3", "kill -SEGV $$", "kill -KILL $$")):
        run = await executor.start(_launch("sh", "-c", body, key=f"default/t1/{number + 1}/0"))
        ended = await _until(run, Ended)
        found.append((ended.ended_as, ended.cause, ended.exit_code))
    assert found == [
        ("failed", Cause.USER_ERROR, 3),
        ("failed", Cause.USER_ERROR, 139),
        ("failed", Cause.UNKNOWN, 137),
    ]


async def test_a_program_that_is_not_there_is_a_failed_start(tmp_path):
    """Proves that the node, not the program, is named when there is nothing to run."""
    with pytest.raises(StartFailed, match="no program"):
        await _executor(tmp_path).start(_launch("no-such-program-here"))


async def test_a_graceful_stop_lets_the_program_save_and_leave(tmp_path):
    """Proves SIGTERM first: what the program writes on its way out is taken as a checkpoint."""
    body = """
import os, signal, sys, time
folder = os.environ["EVENFLOW_CHECKPOINT_DIR"]
def leave(*_):
    with open(os.path.join(folder, ".step"), "w") as f: f.write("41")
    os.rename(os.path.join(folder, ".step"), os.path.join(folder, "step"))
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("armed", flush=True)
time.sleep(60)
"""
    executor = _executor(tmp_path)
    launch = _python(body)
    run = await executor.start(launch)
    await _until(run, Ready)
    await _armed(tmp_path)
    saved = await run.stop(5_000, save=True)
    assert isinstance(saved, Saved)
    assert [saved.part(index) for index in range(saved.part_count)][1] == b"41"
    ended = await run.stop(5_000, save=True)
    assert isinstance(ended, Ended)
    assert ended.ended_as == "stopped"
    assert await executor.reclaim(launch)


async def test_a_program_that_will_not_leave_is_killed_with_its_children(tmp_path):
    """Proves that after the grace the whole group dies, children that ignore the signal included."""
    body = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print('armed', flush=True); time.sleep(60)"
    )
    executor = _executor(tmp_path)
    launch = _python(body)
    run = await executor.start(launch)
    await _until(run, Ready)
    await _armed(tmp_path)
    ended = await run.stop(300, save=True)
    assert (ended.ended_as, ended.exit_code) == ("stopped", None)
    assert await executor.reclaim(launch)
    assert belonging_to(KEY, None) == []


async def test_a_child_that_left_the_group_is_found_and_killed(tmp_path):
    """Proves the reclaim check: a background process in a session of its own does not survive its run."""
    body = (
        "import subprocess, sys; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)"
    )
    executor = _executor(tmp_path)
    launch = _python(body)
    run = await executor.start(launch)
    assert (await _until(run, Ended)).ended_as == "succeeded"
    assert len(belonging_to(KEY, None)) == 1
    assert await executor.reclaim(launch)
    assert belonging_to(KEY, None) == []


async def test_another_agent_finds_the_living_process_and_its_end(tmp_path):
    """Proves adoption: the run goes on without its agent, is started once, and its exit code is not lost."""
    launch = _launch("sh", "-c", "echo once >> ../count; sleep 0.5; exit 7")
    first = await _executor(tmp_path).start(launch)
    await _until(first, Ready)
    second = _executor(tmp_path)
    adopted = await second.start(launch)
    assert isinstance(await adopted.next(), Ready)
    ended = await _until(adopted, Ended)
    assert (ended.cause, ended.exit_code) == (Cause.USER_ERROR, 7)
    assert 450 <= ended.run_ms <= 2_000
    assert (RunFolder(tmp_path, KEY).path / "count").read_text() == "once\n"


async def test_a_group_that_was_killed_is_recognised_as_dead(tmp_path):
    """Proves that a run killed whole while no agent looked ends as unknown, and is not started again."""
    launch = _launch("sleep", "60")
    await _until(await _executor(tmp_path).start(launch), Ready)
    started = RunFolder(tmp_path, KEY).started()
    os.killpg(started.pid, signal.SIGKILL)
    found = await _executor(tmp_path).find(launch)
    ended = await _until(found, Ended)
    assert (ended.ended_as, ended.cause, ended.ready) == ("failed", Cause.UNKNOWN, True)


async def test_what_was_left_before_the_kill_counts_from_when_it_was_written(tmp_path):
    """Proves that an agent that starts after the program's death dates its last checkpoint by the file system."""
    body = """
import os, time
folder = os.environ["EVENFLOW_CHECKPOINT_DIR"]
time.sleep(0.4)
with open(os.path.join(folder, ".step"), "w") as f: f.write("7")
os.utime(os.path.join(folder, ".step"), (0, 0))
os.rename(os.path.join(folder, ".step"), os.path.join(folder, "step"))
print("armed", flush=True)
time.sleep(60)
"""
    launch = _python(body)
    await _until(await _executor(tmp_path).start(launch), Ready)
    await _armed(tmp_path)
    folder = RunFolder(tmp_path, KEY)
    started = folder.started()
    assert started is not None
    os.killpg(started.pid, signal.SIGKILL)
    await asyncio.sleep(0.5)
    run = await _executor(tmp_path).find(launch)
    saved = await _until(run, Saved)
    assert saved.part(1) == b"7"
    assert 350 <= saved.run_ms == saved.progress_ms < 800
    ended = await _until(run, Ended)
    assert ended.run_ms == saved.run_ms


async def test_a_run_of_an_earlier_boot_is_not_taken_for_a_living_one(tmp_path):
    """Proves that a pid of another boot is never mistaken for the run."""
    launch = _launch("true")
    await _until(await _executor(tmp_path, boot="a").start(launch), Ended)
    assert await _executor(tmp_path, boot="b").find(launch) is None


async def test_a_checkpoint_folder_comes_back_at_the_resume(tmp_path):
    """Proves write aside and rename: an unfinished folder is not taken, a renamed one returns file by file."""
    body = (
        "import os; d = os.environ['EVENFLOW_CHECKPOINT_DIR']; os.makedirs(d + '/half.tmp'); "
        "os.makedirs(d + '/.c1/layers'); open(d + '/.c1/layers/0.bin', 'wb').write(b'x' * 20_000_000); "
        "open(d + '/.c1/empty', 'w').close(); os.rename(d + '/.c1', d + '/c1')"
    )
    executor = _executor(tmp_path)
    run = await executor.start(_python(body))
    saved = await _until(run, Saved)
    parts = tuple(saved.part(index) for index in range(saved.part_count))
    assert (saved.size_bytes, saved.part_count) == (20_000_000, 4)
    again = _python(
        "import os, sys; d = os.environ['EVENFLOW_RESUME_DIR']; "
        "sys.exit(0 if os.path.getsize(d + '/layers/0.bin') == 20_000_000 and os.path.exists(d + '/empty') else 1)",
        key="default/t1/2/0", resume_parts=parts, progress_ms=1_000,
    )  # fmt: skip
    ended = await _until(await executor.start(again), Ended)
    assert (ended.ended_as, ended.progress_ms >= 1_000) == ("succeeded", True)


async def _armed(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        while "armed" not in (RunFolder(tmp_path, KEY).path / "output.log").read_text():
            await asyncio.sleep(0.01)


async def test_a_number_that_became_somebody_elses_is_not_killed(tmp_path):
    """Proves that a process which took a dead run's number, or runs since another boot, is left alone."""
    launch = _launch("true")
    await _until(await _executor(tmp_path, boot="a").start(launch), Ended)
    stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    folder = RunFolder(tmp_path, KEY)
    (folder.path / "started").write_text(f"{stranger.pid} 1 1.0", encoding="ascii")
    assert await _executor(tmp_path, boot="a").reclaim(launch)
    folder.make(Noted(boot="a"))
    (folder.path / "started").write_text(f"{stranger.pid} {entry_of(stranger.pid).started} 1.0", encoding="ascii")
    assert await _executor(tmp_path, boot="b").reclaim(launch)
    assert stranger.returncode is None
    stranger.kill()
    await stranger.wait()
