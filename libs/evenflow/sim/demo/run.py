"""`evenflow demo`: the joined and the isolated world at once, each in a process of its own, and what joining was worth.

Both worlds are scenarios like any other: the production services on the virtual clock, with the standing invariants.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from evenflow.sim.demo import report
from evenflow.sim.demo.world import WORLDS

FIGURES: Final = "figures.json"
#: Columns where the output is no terminal.
WIDE: Final = 130
#: A line of figures or of a problem, in bytes.
LINE_MAX: Final = 1 << 20
_NO_WORDS: Final = "it ended without a word"

Told = dict[str, Any]


class WorldFailed(Exception):
    """A world did not come to its end, or something in it did not hold."""


def run_demo(out: Path | None = None, *, as_json: bool = False, tasks: int | None = None) -> int:
    """Run both worlds and print their figures; `tasks` takes the first arrivals only. Returns the exit code."""
    if out is not None:
        return _run(out, kept=True, as_json=as_json, tasks=tasks)
    with tempfile.TemporaryDirectory(prefix="evenflow-demo-") as folder:
        return _run(Path(folder), kept=False, as_json=as_json, tasks=tasks)


def _run(folder: Path, *, kept: bool, as_json: bool, tasks: int | None) -> int:
    console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)
    try:
        if as_json:
            figures = asyncio.run(both_worlds(folder, tasks, lambda _told: None))
        else:
            with Live(console=console, auto_refresh=False, transient=True) as live:
                figures = asyncio.run(
                    both_worlds(folder, tasks, lambda told: live.update(report.progress(told), refresh=True))
                )
    except WorldFailed as failure:
        sys.stderr.write(f"error: {failure}\n")
        if kept:
            sys.stderr.write(f"  The log so far is in {folder}.\n")
        return 1
    text = json.dumps(figures, ensure_ascii=False, indent=1)
    (folder / FIGURES).write_text(text + "\n", encoding="utf-8", newline="\n")
    if as_json:
        sys.stdout.write(text + "\n")
    else:
        for part in report.closing(figures, folder if kept else None):
            console.print(part)
    return 0


async def both_worlds(folder: Path, tasks: int | None, show: Callable[[Mapping[str, Told]], None]) -> dict[str, Told]:
    """The figures of both worlds, by name. `show` hears how far they are. Raises WorldFailed."""
    told: dict[str, Told] = {name: {} for name in WORLDS}
    running: list[Process] = []

    async def world(name: str) -> Told:
        arguments = [name, str(folder / name), *([] if tasks is None else [str(tasks)])]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "evenflow.sim.demo.world", *arguments, stdout=PIPE, stderr=PIPE, limit=LINE_MAX
        )
        running.append(process)

        def tell(said: Told) -> None:
            told[name] = said
            show(told)

        return await _listen(name, process, tell)

    try:
        found = await asyncio.gather(*(world(name) for name in WORLDS))
    finally:
        for process in running:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return dict(zip(WORLDS, found, strict=True))


async def _listen(name: str, process: Process, tell: Callable[[Told], None]) -> Told:
    """Follow one world to its end and return its figures."""
    if process.stdout is None or process.stderr is None:
        raise WorldFailed(f"the {name} world has no output")
    complaints = asyncio.ensure_future(process.stderr.read())
    figures: Told | None = None
    problem = ""
    async for line in process.stdout:
        said = json.loads(line)
        figures = said.get("figures", figures)
        problem = said.get("problem", problem)
        if "t" in said:
            tell(said)
    code = await process.wait()
    last = (await complaints).decode(errors="replace").strip().splitlines()[-1:]
    if code or figures is None:
        why = problem or (last[0] if last else _NO_WORDS)
        raise WorldFailed(f"the {name} world failed (exit code {code}): {why}")
    return figures
