"""Work spread over processes: seeds to live and failures to shrink, each in a fresh world, answers as JSON.

A worker that ends, or that says nothing for too long, gives a failed answer and is replaced. However the loop over the
answers is left, no worker stays behind.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final

#: Processor time of a silent worker after which what it works on counts as hanging. A busy machine makes none hang.
LIMIT_S: Final = 180.0
#: So many times as much by the clock, for one that waits for what never comes.
PATIENCE: Final = 4
LOOK_S: Final = 0.5
#: Pieces of work after which a worker is replaced, so that no leak of one world can weigh on many.
WORK_MAX: Final = 250
STOP_S: Final = 5.0
#: Values made and not freed between two looks of the collector: a few in the course of a world.
YOUNG: Final = 200_000

Row = dict[str, Any]
#: Does one piece of work, in the worker. It is found by name there, so it stands at the top of a module.
Work = Callable[[Row, Callable[[str], None]], Row]
FAILED: Final = "failed"


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    asked: Row | None = None
    heard_s: float = 0.0
    heard_spent_s: float = 0.0
    done_count: int = 0

    def ask(self, row: Row) -> None:
        self.asked = row
        self.hear()
        self.pipe.send_bytes(json.dumps(row).encode())

    def hear(self) -> None:
        """Its silence begins anew."""
        self.heard_s, self.heard_spent_s = time.monotonic(), self._spent_s()

    def hangs(self, limit_s: float) -> bool:
        silent_s = time.monotonic() - self.heard_s
        if silent_s < limit_s:
            return False
        return silent_s >= PATIENCE * limit_s or self._spent_s() - self.heard_spent_s >= limit_s

    def _spent_s(self) -> float:
        """Its processor time; without /proc that of the clock."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return time.monotonic()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.join(STOP_S)
        self.pipe.close()


def spread(
    work: Work,
    asked: Iterator[Row],
    *,
    jobs: int,
    limit_s: float = LIMIT_S,
    tell: Callable[[str], object] | None = None,
) -> Generator[tuple[Row, Row], None, None]:
    """Each piece of work with its answer, in the order of the answers.

    `asked` is drawn from as workers come free, so it can stop early. A worker that ended or went silent for `limit_s`
    answers `{"failed": why}`. `tell` gets what workers say on the way. Close what is returned: that ends the workers.
    """
    workers: list[_Worker] = []
    more = True
    try:
        while True:
            while more and len([worker for worker in workers if worker.asked is not None]) < jobs:
                row = next(asked, None)
                if row is None:
                    more = False
                    break
                _free(workers, work).ask(row)
            busy = [worker for worker in workers if worker.asked is not None]
            if not busy:
                return
            yield from _heard(workers, busy, limit_s, tell)
    finally:
        for worker in workers:
            worker.end()


def _free(workers: list[_Worker], work: Work) -> _Worker:
    found = next((worker for worker in workers if worker.asked is None), None)
    if found is None:
        found = _started(work)
        workers.append(found)
    return found


def _started(work: Work) -> _Worker:
    spawn = get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there, work), daemon=True)
    with _no_interrupts():
        process.start()
    there.close()
    return _Worker(process, here)


@contextlib.contextmanager
def _no_interrupts() -> Iterator[None]:
    """Processes started inside leave an interrupt to their parent, which ends them."""
    try:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    except ValueError:  # not in the main thread, where no interrupt arrives anyway
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _heard(
    workers: list[_Worker], busy: list[_Worker], limit_s: float, tell: Callable[[str], object] | None
) -> Iterator[tuple[Row, Row]]:
    rest_s = min(worker.heard_s for worker in busy) + limit_s - time.monotonic()
    ready = wait([worker.pipe for worker in busy], timeout=max(LOOK_S, rest_s))
    for worker in busy:
        asked = worker.asked or {}
        if worker.pipe in ready:
            answer = _received(worker, tell)
            if answer is None:
                continue
        elif worker.hangs(limit_s):
            answer = {FAILED: f"hangs: no end within {limit_s:g} s"}
        else:
            continue
        worker.asked = None
        worker.done_count += 1
        if FAILED in answer or worker.done_count >= WORK_MAX:
            workers.remove(worker)
            worker.end()
        yield asked, answer


def _received(worker: _Worker, tell: Callable[[str], object] | None) -> Row | None:
    """The answer of a worker; None when it only said something."""
    try:
        message: Row = json.loads(worker.pipe.recv_bytes())
    except (EOFError, OSError):
        worker.process.join(STOP_S)
        return {FAILED: f"died: its process ended with {worker.process.exitcode}"}
    if "told" in message:
        worker.hear()
        if tell is not None:
            tell(str(message["told"]))
        return None
    answer: Row = message["answer"]
    return answer


def serve(pipe: Connection, work: Work) -> None:
    """A worker's life: work until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _collect_rarely()
    with contextlib.suppress(EOFError, OSError):
        while True:
            asked: Row = json.loads(pipe.recv_bytes())
            answer = work(asked, lambda text: pipe.send_bytes(json.dumps({"told": text}).encode()))
            pipe.send_bytes(json.dumps({"answer": answer}).encode())


def _collect_rarely() -> None:
    """Leave what is loaded out of the collector's scans, and look for cycles between worlds, hardly within."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])
