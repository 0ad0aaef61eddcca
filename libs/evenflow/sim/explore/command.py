"""`evenflow simulate explore`: seeds in, figures and an exit code out."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from evenflow.sim.explore.drawing import draw
from evenflow.sim.explore.jobs import FAILED, LIMIT_S, Row, spread
from evenflow.sim.explore.lives import live
from evenflow.sim.explore.report import RUN, Found, Outcome, Report
from evenflow.sim.explore.sameness import BROKE_OFF, Failure, Same, failures_of, kind_of, rest_s
from evenflow.sim.explore.scene import Document
from evenflow.sim.explore.shrinking import CPU_S_MAX, shrink
from evenflow.sim.explore.writing import written
from evenflow.sim.scenario.outcome import FAILS, HOLDS, WRONG

#: Time after `settle` with which failures that are judged at the end are shrunk first.
SHORT_REST_S: Final = 240
#: Failing seeds that are shrunk at most, each the first of its kind.
SHRUNK_MAX: Final = 10
ABOUT_MAX: Final = 160
#: Seconds between two lines about the progress, where no bar can be drawn.
SAY_EVERY_S: Final = 30.0

Write = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Exploration:
    """What is explored and how. `kinds` limits the faults that are drawn from, None = all.

    It ends after `minutes`, and at the first failing seed unless `keep_going`. `shrink_s` is the processor time for the
    shrinking of one failing seed, 0 = none. `limit_s` is how long one seed may take.
    """

    seeds: range
    kinds: Sequence[str] | None = None
    jobs: int = 1
    minutes: float | None = None
    keep_going: bool = False
    out: Path = field(default_factory=lambda: Path("found"))
    shrink_s: float = CPU_S_MAX
    limit_s: float = LIMIT_S


def run_explore(exploration: Exploration, *, as_json: bool = False, write: Write = print, quiet: bool = False) -> int:
    """Explore, shrink what failed, and say what came of it.

    Returns 0 when nothing was found, 1 when something was, 2 when a fault or a fail point never occurred over enough
    seeds.
    """
    report = explored(exploration, quiet=quiet)
    if as_json:
        write(json.dumps(report.figures(), ensure_ascii=False, separators=(",", ":")))
    else:
        for line in report.lines():
            write(line)
    return FAILS if report.failing else WRONG if report.never() else HOLDS


def explore_bench(seeds: int = 50, jobs: int = 1) -> dict[str, Any]:
    """The figures of so many worlds from seed 0 with all faults, whether they hold or not; nothing is shrunk."""
    return explored(Exploration(range(seeds), jobs=jobs, keep_going=True, shrink_s=0)).figures()


def explored(exploration: Exploration, *, quiet: bool = True) -> Report:
    """The report of an exploration; equal for any number of jobs but for what was measured."""
    report = Report(exploration.kinds, exploration.jobs)
    screen = _Screen(len(exploration.seeds), quiet=quiet)
    began_s = time.monotonic()
    with screen:
        _live_all(exploration, report, screen, began_s)
        report.wall_s = time.monotonic() - began_s
        if exploration.shrink_s > 0:
            _shrink_all(exploration, report, screen)
    return report


def _live_all(exploration: Exploration, report: Report, screen: _Screen, began_s: float) -> None:
    failed: list[int] = []

    def wanted() -> Iterator[Row]:
        for seed in exploration.seeds:
            late = exploration.minutes is not None and time.monotonic() - began_s >= exploration.minutes * 60
            if late or (failed and not exploration.keep_going):
                return
            yield {"seed": seed, "kinds": None if exploration.kinds is None else list(exploration.kinds)}

    answers = spread(work, wanted(), jobs=exploration.jobs, limit_s=exploration.limit_s)
    with contextlib.closing(answers):
        for asked, answer in answers:
            outcome = _outcome(asked, answer)
            report.add(outcome)
            if outcome.problems:
                failed.append(outcome.seed)
                screen.say(f"seed {outcome.seed} fails: {outcome.problems[0]}")
            screen.advance(f"{len(failed)} failing" if failed else "nothing found")
    if failed and not exploration.keep_going:
        report.keep_until(min(failed))


def _outcome(asked: Row, answer: Row) -> Outcome:
    if FAILED not in answer:
        return Outcome(**answer)
    return Outcome(seed=asked["seed"], faults=list(draw(asked["seed"], asked["kinds"])[1]), problems=[answer[FAILED]])


def _shrink_all(exploration: Exploration, report: Report, screen: _Screen) -> None:
    firsts = list(report.first_of_each_kind().values())[:SHRUNK_MAX]
    kinds = None if exploration.kinds is None else list(exploration.kinds)
    wanted = (
        {"shrink": outcome.seed, "kinds": kinds, "problems": outcome.problems, "cpu_s": exploration.shrink_s}
        for outcome in firsts
    )
    answers = spread(work, wanted, jobs=exploration.jobs, limit_s=exploration.limit_s, tell=screen.say)
    with contextlib.closing(answers):
        for asked, answer in answers:
            found = kept(exploration.out, asked, answer)
            report.found[found.seed] = found


def kept(out: Path, asked: Row, answer: Row) -> Found:
    """Write the file of a failing seed: the shrunk world, or the whole one when it can't be repeated from a file."""
    seed = asked["shrink"]
    whole = draw(seed, asked["kinds"])[0]
    out.mkdir(parents=True, exist_ok=True)
    stem = _stem(seed, asked["problems"][0])
    file = out / f"{stem}.yaml"
    if FAILED in answer or answer["document"] is None:
        file.write_text(written({**whole, "name": stem, "expect": []}), encoding="utf-8")
        return Found(seed, str(file), "", len(whole["steps"]), len(whole["steps"]))
    replay = f"{RUN} {file}" + " --lean" * answer["lean"]
    document = {**answer["document"], "name": stem, "about": _about(answer["problem"]), "expect": []}
    remarks = (f"Drawn from seed {seed}, then shrunk. Again with: {RUN} FILE" + " --lean" * answer["lean"],)
    file.write_text(written(document, remarks=remarks), encoding="utf-8")
    return Found(seed, str(file), replay, len(document["steps"]), len(whole["steps"]))


def _stem(seed: int, problem: str) -> str:
    name = kind_of(problem).partition(":")[0].lower().replace(" ", "-")
    return f"seed-{seed}-{name}"


def _about(problem: str) -> str:
    text = f"found: {problem}"
    return text if len(text) <= ABOUT_MAX else text[: ABOUT_MAX - 1] + "…"


# -- in the workers ----------------------------------------------------------------------------------------------------
def work(asked: Row, tell: Callable[[str], None]) -> Row:
    """Live a seed, or shrink one; both in this process."""
    if "shrink" in asked:
        return shrunk(asked["shrink"], asked["kinds"], asked["problems"], asked["cpu_s"], tell)
    return lived(asked["seed"], asked["kinds"])


def lived(seed: int, kinds: Sequence[str] | None) -> Row:
    """One seed, as the fields of an Outcome. Whatever breaks it off is a problem of its own."""
    began_s = time.process_time()
    document, faults = draw(seed, kinds)
    tasks = len({step["submit"].get("id") for step in document["steps"] if "submit" in step})
    row: Row = {"seed": seed, "faults": list(faults), "tasks": tasks}
    try:
        life = live(document, seed, faults)
    except Exception as error:  # noqa: BLE001  an error of the world or of the observer is a finding
        row["problems"] = [f"{BROKE_OFF}: {type(error).__name__}: {error}"]
    else:
        row |= {"problems": life.problems, "records": life.records, "points": life.points}
        row |= {"states": life.states, "reasons": life.reasons}
    return {**row, "cpu_s": time.process_time() - began_s}


def shrunk(
    seed: int, kinds: Sequence[str] | None, problems: Sequence[str], cpu_s: float, tell: Callable[[str], None]
) -> Row:
    """The smallest document that fails as a seed did, whether it takes the lean way, and its problem.

    `document` is None when the world does not fail in the same way from a file.
    """
    document = draw(seed, kinds)[0]
    wanted = [kind_of(problem) for problem in problems]
    for lean in (True, False):
        failure = _first(document, wanted, lean=lean)
        if failure is not None:
            tell(f"seed {seed}: shrinking {failure.kind}")
            small = _smallest(
                document, failure, lean=lean, cpu_s=cpu_s, tell=lambda text: tell(text and f"seed {seed}: {text}")
            )
            plainly = _first(small, [failure.kind], lean=False) if lean else None
            problem = plainly or _first(small, [failure.kind], lean=lean) or failure
            return {"document": small, "lean": lean and plainly is None, "problem": problem.problem}
    return {"document": None}


def _first(document: Document, kinds: Sequence[str], *, lean: bool) -> Failure | None:
    """The first failure of the first of the kinds that occurs."""
    found = failures_of(document, lean=lean)
    return next((failure for kind in kinds for failure in found if failure.kind == kind), None)


def _smallest(
    document: Document, failure: Failure, *, lean: bool, cpu_s: float, tell: Callable[[str], None]
) -> Document:
    """Shrink with what is known of the failure.

    One that is judged at the end is shrunk with less time after `settle` first, which costs far less; what comes of
    that counts only if it fails with the whole time too.
    """
    began_s = time.process_time()
    if not failure.at_end:
        same = _heartbeat(Same(document, failure, lean=lean), tell)
        return shrink(document, same, tell, ends_s=failure.at_s, cpu_s_max=cpu_s)
    whole_s = rest_s(document)
    if whole_s is not None and whole_s > SHORT_REST_S:
        short = {**document, "until": document["until"] - whole_s + SHORT_REST_S}
        same = _heartbeat(Same(short, failure, lean=lean), tell)
        if same(short):
            small = shrink(short, same, tell, cpu_s_max=cpu_s / 2)
            small = {**small, "until": small["until"] - SHORT_REST_S + whole_s}
            if Same(document, failure, lean=lean)(small):
                return small
    spent_s = time.process_time() - began_s
    return shrink(document, _heartbeat(Same(document, failure, lean=lean), tell), tell, cpu_s_max=cpu_s - spent_s)


def _heartbeat(same: Same, tell: Callable[[str], None]) -> Callable[[Document], bool]:
    """Tells after every try, so that shrinking is not taken for hanging."""

    def tried(document: Document) -> bool:
        found = same(document)
        tell("")
        return found

    return tried


# -- for people --------------------------------------------------------------------------------------------------------
class _Screen:
    """A bar on a terminal, a line now and then elsewhere; always on standard error, drawn by nobody's thread."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._quiet = quiet
        self._bar = not quiet and sys.stderr.isatty()
        self._total, self._done, self._said_s = total, 0, time.monotonic()
        self._progress = Progress(
            *(TextColumn("exploring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            auto_refresh=False,
        )
        self._task: Any = self._progress.add_task("", total=total)

    def __enter__(self) -> None:
        if self._bar:
            self._progress.start()

    def __exit__(self, *_error: object) -> None:
        if self._bar:
            self._progress.stop()

    def advance(self, text: str) -> None:
        """One more seed is done."""
        self._done += 1
        self._progress.update(self._task, advance=1, description=text)
        if self._bar:
            self._progress.refresh()
        elif not self._quiet and time.monotonic() - self._said_s >= SAY_EVERY_S:
            self._said_s = time.monotonic()
            self.say(f"{self._done} of {self._total} seeds, {text}")

    def say(self, text: str) -> None:
        """One line beside the bar."""
        if text and self._bar:
            self._progress.console.print(text, highlight=False, markup=False)
        elif text and not self._quiet:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
