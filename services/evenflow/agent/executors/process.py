"""The process executor: real programs in sessions of their own, which live on when the agent ends.

No thread and no child watcher: a file descriptor of the process (pidfd) becomes readable when it ends, and that works
for processes that another agent started just as well.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from pathlib import Path
from typing import Any, Final

from evenflow.agent.executors.output_log import OutputLog
from evenflow.agent.executors.process_table import belonging_to, boot_id, entry_of, oom_kills, send_signal
from evenflow.agent.executors.run_folder import Noted, RunFolder
from evenflow.agent.executors.snapshots import appeared, restore, snapshot_of
from evenflow.agent.ports import Ended, Launch, Progressed, Ready, Run, RunEvent, Saved, StartFailed
from evenflow.core.errors import FieldRefused, Refused
from evenflow.core.lifecycle.causes import Cause
from evenflow.platform.clock import Clock
from evenflow.platform.stores.ports import Objects

POLL_MS: Final = 250
STARTING_POLL_MS: Final = 10
MARK_TIMEOUT_MS: Final = 2_000
KILL_TIMEOUT_MS: Final = 5_000
SEEN_PERIOD_MS: Final = 2_000
SHELL_SIGNALLED: Final = 128
#: Signals that come from outside the program; others are its own fault.
FROM_OUTSIDE: Final = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class ProcessExecutor:
    """Runs commands under one folder."""

    def __init__(self, root: Path, clock: Clock, *, objects: Objects | None, log: Any, boot: str = "") -> None:
        self._root = root.absolute()
        self._clock = clock
        self._objects = objects
        self._log = log
        self._boot = boot or boot_id()

    async def start(self, launch: Launch) -> Run:
        """Start, or find what was started under this key. Raises StartFailed."""
        found = await self.find(launch)
        if found is not None:
            return found
        folder = RunFolder(self._root, launch.key)
        environment = folder.environment(launch)
        program = launch.task.command[0]
        if shutil.which(program, path=environment.get("PATH", os.defpath)) is None:
            raise StartFailed(f"there is no program {program[:200]!r} on this node")
        noted = Noted(boot=self._boot, progress_ms=launch.progress_ms, oom_kills=oom_kills())
        try:
            if launch.resume_parts:
                restore(launch.resume_parts, folder.path / "resume")
            folder.make(noted)
            child = folder.spawn(launch)
        except (OSError, ValueError, FieldRefused) as error:
            raise StartFailed(f"could not be started: {error}") from error
        return ProcessRun(self, folder, launch, noted, child)

    async def find(self, launch: Launch) -> Run | None:
        """What was started under this key on this boot; None = no start got as far as leaving a trace."""
        folder = RunFolder(self._root, launch.key)
        if not folder.exists:
            return None
        noted = folder.noted()
        if noted.boot != self._boot:
            return None
        waited_ms = 0
        while folder.started() is None and belonging_to(launch.key, None) and waited_ms < MARK_TIMEOUT_MS:
            await self._clock.sleep(STARTING_POLL_MS / 1000)
            waited_ms += STARTING_POLL_MS
        if folder.started() is None:
            return None
        return ProcessRun(self, folder, launch, noted, None)

    async def reclaim(self, launch: Launch) -> bool:
        """Kill whatever is left of the run, wherever it went, and remove its folder; True when nothing is left."""
        folder = RunFolder(self._root, launch.key)
        session = self._session_of(folder)
        deadline_ms = self._clock.monotonic_ms() + KILL_TIMEOUT_MS
        while left := belonging_to(launch.key, session):
            if self._clock.monotonic_ms() > deadline_ms:
                self._log.error("processes left over", run=launch.key, pids=[entry.pid for entry in left])
                return False
            send_signal(left, signal.SIGKILL)
            await self._clock.sleep(STARTING_POLL_MS / 1000)
        return folder.remove()

    def _session_of(self, folder: RunFolder) -> int | None:
        """The run's session, if that number is still its own: after a boot or a reuse it may be anybody's."""
        started = folder.started()
        if started is None or not folder.exists or folder.noted().boot != self._boot:
            return None
        leader = entry_of(started.pid)
        return started.pid if leader is None or leader.started == started.ticks else None

    @property
    def clock(self) -> Clock:
        """The executor's clock."""
        return self._clock

    def output_log(self, folder: RunFolder, launch: Launch, noted: Noted) -> OutputLog:
        """The sender of one run's output."""
        path = folder.path / "output.log"
        return OutputLog(path, launch, noted, clock=self._clock, objects=self._objects, log=self._log)


class ProcessRun:
    """One process as this agent follows it; `child` is its pid, None when another agent started it."""

    def __init__(
        self, executor: ProcessExecutor, folder: RunFolder, launch: Launch, noted: Noted, child: int | None
    ) -> None:
        self._clock = executor.clock
        self._folder = folder
        self._launch = launch
        self._noted = noted
        self._child = child
        self._output = executor.output_log(folder, launch, noted)
        self._told_ready = False
        self._began_ms: int | None = None
        self._ticks = 0
        self._seen_ms = 0
        self._deadline_ms: int | None = None

    # --- following --------------------------------------------------------------------------------------------------

    async def next(self) -> RunEvent:
        """What happens next: ready, progress kept or made, the end."""
        while True:
            alive = self._alive()
            started = None if self._told_ready else self._folder.started()
            if started is not None:
                self._told_ready = True
                return Ready(max(0, uptime_ms() - started.uptime_ms))
            if self._told_ready:
                await self._send_output(last=not alive)
                saved = self._saved()
                if saved is not None:
                    return saved
            if not alive:
                return self._ended()
            tick = self._tick()
            if tick is not None:
                return tick
            await self._wait(POLL_MS if self._told_ready else STARTING_POLL_MS)

    async def _send_output(self, *, last: bool) -> None:
        if await self._output.send(last=last):
            self._folder.note(self._noted)

    def _saved(self) -> Saved | None:
        """A checkpoint that appeared since; one that can't be kept is passed over."""
        path, identities = appeared(self._folder.path / "checkpoints", self._noted.known)
        if path is None:
            return None
        self._noted.known = identities
        self._folder.note(self._noted)
        try:
            snapshot = snapshot_of(path)
            run_ms = self._written_ms(path)
        except (OSError, Refused):
            return None
        parts = snapshot.parts
        return Saved(run_ms, self._noted.progress_ms + run_ms, snapshot.size_bytes, len(parts), lambda i: parts[i]())

    def _written_ms(self, path: Path) -> int:
        """Run time when an entry got its name, by the file system; OSError when it vanishes.

        Whoever looks may look late: an agent that starts again finds what a program left before it was killed.
        """
        started = self._folder.started()
        if started is None:
            return 0
        age_ms = max(0, self._clock.now_ms() - path.stat().st_ctime_ns // 1_000_000)
        written_ms = max(0, uptime_ms() - age_ms - started.uptime_ms)
        if self._folder.exited() is not None or self._alive():
            return min(written_ms, self._run_ms())
        if written_ms > self._folder.seen_ms():
            self._folder.see(written_ms)
        return written_ms

    def _tick(self) -> Progressed | None:
        run_ms = self._run_ms()
        if run_ms - self._seen_ms >= SEEN_PERIOD_MS:
            self._seen_ms = run_ms
            self._folder.see(run_ms)
        every_ms = self._launch.progress_every_ms
        ticks = run_ms // every_ms if every_ms else 0
        if ticks <= self._ticks:
            return None
        self._ticks = ticks
        return Progressed(run_ms, self._noted.progress_ms + run_ms)

    async def _wait(self, wait_ms: int) -> None:
        """Until the process ends, or for a while."""
        pid = self._pid()
        try:
            descriptor = os.pidfd_open(pid) if pid else None
        except OSError:
            descriptor = None
        if descriptor is None:
            await self._clock.sleep(min(wait_ms, STARTING_POLL_MS) / 1000)
            return
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(descriptor, _set, gone)
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await gone
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    # --- where it stands --------------------------------------------------------------------------------------------

    def _pid(self) -> int:
        started = self._folder.started()
        if started is not None:
            return started.pid
        return self._child or 0

    def _alive(self) -> bool:
        self._reap()
        started = self._folder.started()
        if started is None:
            return self._child is not None
        entry = entry_of(started.pid)
        return entry is not None and entry.alive and entry.started == started.ticks

    def _reap(self) -> None:
        """Take the exit of an own child, so that it does not stay a zombie."""
        if self._child is not None:
            try:
                pid, _ = os.waitpid(self._child, os.WNOHANG)
            except ChildProcessError:
                pid = self._child
            if pid:
                self._child = None

    def _run_ms(self) -> int:
        """Run time by the machine's uptime: from the process's own start to its own end, or till now."""
        started, exited = self._folder.started(), self._folder.exited()
        if started is None:
            return 0
        if exited is not None:
            return max(0, exited.uptime_ms - started.uptime_ms)
        if not self._alive():
            return self._folder.seen_ms()
        return max(0, uptime_ms() - started.uptime_ms)

    def _ended(self) -> Ended:
        run_ms, exited = self._run_ms(), self._folder.exited()
        ready = self._folder.started() is not None
        now_ms, progress_ms = self._clock.monotonic_ms(), self._noted.progress_ms + run_ms
        code = exited.code if exited is not None else None
        if self._noted.stop_asked:
            return Ended("stopped", now_ms, run_ms, progress_ms, ready, exit_code=code)
        if not ready:
            return Ended("failed", now_ms, 0, progress_ms, ready, Cause.START_FAILED, code, "ended before it began")
        if code == 0:
            return Ended("succeeded", now_ms, run_ms, progress_ms, ready, exit_code=0)
        cause, message = self._cause(code)
        return Ended("failed", now_ms, run_ms, progress_ms, ready, cause, code, message)

    def _cause(self, code: int | None) -> tuple[Cause, str]:
        number = code - SHELL_SIGNALLED if code is not None and code > SHELL_SIGNALLED else 0
        if (code is None or number == signal.SIGKILL) and oom_kills() > self._noted.oom_kills:
            return Cause.OUT_OF_MEMORY, "killed by the kernel for want of memory"
        if code is None:
            return Cause.UNKNOWN, "its whole process group was killed"
        if number in FROM_OUTSIDE:
            return Cause.UNKNOWN, f"killed by signal {number}"
        return Cause.USER_ERROR, f"killed by signal {number}" if number else f"exit code {code}"

    # --- ending -----------------------------------------------------------------------------------------------------

    async def stop(self, grace_ms: int, *, save: bool) -> RunEvent:
        """Ask it to end (SIGTERM to its group), take what it saves on the way, kill it when the grace is over."""
        if not self._alive() and not self._noted.stop_asked:
            return await self.next()  # it ended by itself before
        now_ms = self._clock.monotonic_ms()
        if self._deadline_ms is None:
            self._deadline_ms = now_ms + grace_ms
            self._noted.stop_asked = True
            self._folder.note(self._noted)
            self._signal_group(signal.SIGTERM)
        self._told_ready = True
        while self._alive() and self._clock.monotonic_ms() < self._deadline_ms:
            saved = self._saved() if save else None
            if saved is not None:
                return saved
            await self._wait(min(POLL_MS, max(1, self._deadline_ms - self._clock.monotonic_ms())))
        if self._alive():
            return await self.kill()
        await self._send_output(last=True)
        saved = self._saved() if save else None
        return saved if saved is not None else self._ended()

    async def kill(self) -> Ended:
        """SIGKILL to its group and to whatever carries its mark."""
        if self._alive():
            self._folder.see(self._run_ms())
            self._noted.stop_asked = True
            self._folder.note(self._noted)
        deadline_ms = self._clock.monotonic_ms() + KILL_TIMEOUT_MS
        self._signal_group(signal.SIGKILL)
        while self._alive() and self._clock.monotonic_ms() < deadline_ms:
            await self._wait(POLL_MS)
        await self._send_output(last=True)
        return self._ended()

    async def save(self) -> None:
        """Nothing: a program saves when it chooses to."""

    def _signal_group(self, number: signal.Signals) -> None:
        pid = self._pid()
        if pid and self._alive():
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                return


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def uptime_ms() -> int:
    """Milliseconds since the boot, by the clock that the shell lines read too."""
    return round(float(Path("/proc/uptime").read_text(encoding="ascii").split()[0]) * 1000)
