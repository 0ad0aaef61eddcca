"""The demo: both worlds at once, live progress, then every figure, which each world makes from its own kept log."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from evenflow.sim.demo.figures import FIGURES, Figures
from evenflow.sim.demo.report import show

WORLDS: Final = ("isolated", "joined")
LINE_BYTES_MAX: Final = 65_536


def run_demo(*, out: Path | None = None, as_json: bool = False, task_count: int | None = None) -> int:
    """Run the demo and print its figures; returns the exit code. Without `out` the logs are gone afterwards.

    `task_count` takes only the first so many tasks, for a quick look.
    """
    if out is not None:
        return _run(out, as_json=as_json, kept=True, task_count=task_count)
    with tempfile.TemporaryDirectory(prefix="evenflow-demo-") as folder:
        return _run(Path(folder), as_json=as_json, kept=False, task_count=task_count)


def _run(folder: Path, *, as_json: bool, kept: bool, task_count: int | None) -> int:
    screen = Console(stderr=as_json)
    try:
        for name in WORLDS:
            (folder / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        screen.print(f"{error.filename} can't be written: {error.strerror}", markup=False, style="red")
        return 1
    failed = asyncio.run(_both(folder, screen, task_count))
    if failed:
        screen.print(failed[0], markup=False, style="red")
        return 1
    figures = {name: json.loads((folder / name / FIGURES).read_text(encoding="utf-8")) for name in WORLDS}
    written = json.dumps(figures, indent=1, sort_keys=True)
    (folder / FIGURES).write_text(written + "\n")
    if as_json:
        sys.stdout.write(written + "\n")
    else:
        found = {name: Figures.from_json(figures[name]) for name in WORLDS}
        show(screen, found["joined"], found["isolated"], folder if kept else None)
    return 0


async def _both(folder: Path, screen: Console, task_count: int | None) -> list[str]:
    """Run both worlds; what went wrong, if anything, the first first. One that fails ends the other."""
    failed: list[str] = []
    processes: list[Process] = []
    columns = (
        TextColumn("{task.description:>8}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} tasks ended"),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=screen, transient=True) as progress:
        bars = {name: progress.add_task(name, total=task_count or 1, told="starting") for name in WORLDS}

        def told(name: str, line: dict[str, int]) -> None:
            clock = f"{line['t_s'] // 3600:02d}:{line['t_s'] // 60 % 60:02d}"
            text = f"at {clock}: {line['waiting']} wait, {line['running']} run"
            progress.update(bars[name], total=line["total"], completed=line["ended"], told=text)

        async def world(name: str) -> None:
            problem = await _world(name, folder / name, told, task_count, processes)
            if problem:
                failed.append(problem)
                for process in processes:
                    if process.returncode is None:
                        process.kill()

        await asyncio.gather(*(world(name) for name in WORLDS))
    return failed


async def _world(
    name: str,
    folder: Path,
    told: Callable[[str, dict[str, int]], None],
    task_count: int | None,
    processes: list[Process],
) -> str:
    """Run one world and follow it to its end; what went wrong, or nothing."""
    arguments = [name, str(folder)] + ([str(task_count)] if task_count is not None else [])
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "evenflow.sim.demo.world",
        *arguments,
        stdout=PIPE,
        stderr=PIPE,
        limit=LINE_BYTES_MAX,
    )
    processes.append(process)
    try:
        _, said = await asyncio.gather(_progress(process.stdout, name, told), _rest(process.stderr))
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return "" if code == 0 else f"the {name} world failed (exit {code}):\n{said}"


async def _progress(
    stream: asyncio.StreamReader | None, name: str, told: Callable[[str, dict[str, int]], None]
) -> None:
    while stream is not None and (line := await stream.readline()):
        told(name, json.loads(line))


async def _rest(stream: asyncio.StreamReader | None) -> str:
    return (await stream.read()).decode(errors="replace")[-8_000:] if stream is not None else ""
