"""What `python -m evenflow.testkit.fuzz` does: everything once, with its figures; 1 when a bound breaks.

--count N     records to throw, over all topics (default 20000); requests are a sixth of that, values a tenth
--seed N      of everything that is generated (default 1)
--jobs N      processes that share the records (default 1)
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections import Counter
from functools import partial

from evenflow.platform.clock import SystemClock
from evenflow.testkit.fuzz.course import Figures, fuzz_records
from evenflow.testkit.fuzz.doors import DoorFigures, fuzz_doors
from evenflow.testkit.fuzz.quantities import QuantityFigures, fuzz_quantities

REQUESTS_PER_RECORD = 6
VALUES_PER_RECORD = 10
#: Seeds of the processes that share a run are this far apart.
SEEDS_APART = 1_000_003
PROBLEMS_SHOWN_MAX = 20
#: A process that says nothing for so long is stuck.
TIME_MAX_S = 3_600


def say(text: str) -> None:
    """A line, at once."""
    print(text, flush=True)  # noqa: T201  the command's own output


def records_by(seed: int, count: int) -> Figures:
    """One process's part of the records."""
    return fuzz_records(count, seed, partial(_of, seed))


def _of(seed: int, text: str) -> None:
    say(f"  [{seed}] {text}")


def together(parts: list[Figures]) -> Figures:
    """The figures of several processes as one."""
    whole = Figures()
    for part in parts:
        for name, one in part.topics.items():
            mine = whole.topics[name]
            mine.thrown += one.thrown
            mine.parked += one.parked
            mine.applied += one.applied
            mine.refused += one.refused
        whole.ways += part.ways
        whole.reasons += part.reasons
        whole.compared += part.compared
        whole.worlds += part.worlds
        whole.revoked += part.revoked
        whole.problems += part.problems
    return whole


def show_records(figures: Figures) -> None:
    """A line per topic, then how records were spoiled and why they were parked."""
    say(f"\n{'topic':34} {'thrown':>7} {'parked':>7} {'applied':>7} {'refused by the log':>19}")
    for name, one in figures.topics.items():
        say(f"{name:34} {one.thrown:7} {one.parked:7} {one.applied:7} {one.refused:19}")
    total = [sum(getattr(one, name) for one in figures.topics.values()) for name in ("parked", "applied", "refused")]
    say(f"{'all':34} {figures.thrown:7} {total[0]:7} {total[1]:7} {total[2]:19}")
    say(f"how: {_listed(figures.ways)}")
    say(f"parked for: {_listed(figures.reasons)}")
    say(
        f"{figures.worlds} worlds; {figures.compared} parked records thrown again alone, state compared with a world"
        f" at which nothing was thrown; {figures.revoked} agents ended because a forged record revoked their node"
    )


def show_doors(figures: DoorFigures) -> None:
    """A line per route with its answers."""
    say(f"\n{'route':78} calls  answers")
    for name, answers in figures.routes.items():
        shown = ", ".join(f"{status}: {answers[status]}" for status in sorted(answers))
        say(f"{name:78} {answers.total():5}  {shown}")
    say(f"{figures.calls} requests to {len(figures.routes)} routes; how: {_listed(figures.ways)}")


def show_quantities(figures: QuantityFigures) -> None:
    """One line."""
    refused = figures.tried - figures.numbers
    say(f"\n{figures.tried} quantities read by the task specification: {refused} are none, {figures.numbers} compared")


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def main(arguments: list[str]) -> int:
    """The whole run."""
    parser = argparse.ArgumentParser(prog="evenflow.testkit.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    clock = SystemClock()
    begun_ms = clock.monotonic_ms()
    share = -(-chosen.count // chosen.jobs)
    parts = [(chosen.seed + number * SEEDS_APART, share) for number in range(chosen.jobs)]
    if chosen.jobs == 1:
        figures = records_by(*parts[0])
    else:
        with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
            figures = together(pool.starmap_async(records_by, parts).get(TIME_MAX_S))
    show_records(figures)
    doors = fuzz_doors(max(1, chosen.count // REQUESTS_PER_RECORD), chosen.seed, say)
    show_doors(doors)
    quantities = fuzz_quantities(max(1, chosen.count // VALUES_PER_RECORD), chosen.seed)
    show_quantities(quantities)
    problems = [*figures.problems, *doors.problems, *quantities.problems]
    if figures.thrown < chosen.count:
        problems.append(f"only {figures.thrown} of {chosen.count} records were thrown")
    for problem in problems[:PROBLEMS_SHOWN_MAX]:
        say(f"PROBLEM {problem}")
    took_s = (clock.monotonic_ms() - begun_ms) / 1000
    say(
        f"\nfuzz: seed {chosen.seed}, {figures.thrown} records, {doors.calls} requests, {quantities.tried} quantities"
        f" in {took_s:.0f} s: {'nothing found' if not problems else f'{len(problems)} problems'}"
    )
    return 1 if problems else 0
