"""Shrinking: from a world that fails to the smallest one that fails in the same way.

Delta debugging over everything a scenario document says. A pass has a list of small changes (leave out a step, a field,
a node; lower a count; round a duration) and makes as many of them as it can: all at once, then halves, quarters, single
ones. Passes go round until none of them changes anything, or until the budget is spent.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from evenflow.sim.explore import leaving
from evenflow.sim.explore.leaving import Path, leaves, replaced, without_paths
from evenflow.sim.explore.scene import Document

TRIES_MAX: Final = 1_000
CPU_S_MAX: Final = 300.0
ROUNDS_MAX: Final = 6
#: Numbers that count something, and to what they are lowered first.
COUNTS: Final = ("times", "copies", "members", "count", "parts", "offsets", "after_steps", "member")
#: Time that is left after the moment of the failure when the rest is cut off.
AFTER_S: Final = 1
#: Parts of the time after the last step to which `until` is lowered.
PARTS: Final = (0.0, 0.1, 0.25, 0.5, 0.75)

Fails = Callable[[Document], bool]
Tell = Callable[[str], object]
_Item = TypeVar("_Item")


class _EnoughError(Exception):
    """The budget is spent."""


def _silent(_text: str) -> None:
    """Say nothing."""


def shrink(
    document: Document,
    fails: Fails,
    tell: Tell = _silent,
    *,
    ends_s: float | None = None,
    tries_max: int = TRIES_MAX,
    cpu_s_max: float = CPU_S_MAX,
) -> Document:
    """The smallest document found for which `fails` is true; the given one when nothing can go.

    `fails` says whether a document still fails in the same way; what is no scenario does not. `ends_s` is the moment of
    the failure when nothing later matters. At most `tries_max` documents are tried, in `cpu_s_max` seconds of processor
    time (the last try may go beyond). The given document is not changed.
    """
    shrinker = _Shrinker(document, fails, tell, tries_max, cpu_s_max)
    try:
        shrinker.run(ends_s)
    except _EnoughError:
        tell(f"budget spent after {shrinker.tries} tries")
    return shrinker.best


class _Shrinker:
    """One course of shrinking. `best` is the smallest failing document so far."""

    def __init__(self, document: Document, fails: Fails, tell: Tell, tries_max: int, cpu_s_max: float) -> None:
        self.best: Document = json.loads(json.dumps(document))
        self.tries = 0
        self._fails, self._tell = fails, tell
        self._tries_max, self._cpu_s_max = tries_max, cpu_s_max
        self._began_s = time.process_time()  # a budget of the machine's time: no world sees it
        self._seen: set[str] = {_text(self.best)}

    def run(self, ends_s: float | None) -> None:
        """All passes, until a whole round changes nothing."""
        if ends_s is not None:
            self._cut_off(ends_s)
        for _ in range(ROUNDS_MAX):
            before = _text(self.best)
            for work in self._passes():
                work()
            self._tell(f"{len(self.best['steps'])} steps, {len(_text(self.best))} characters, {self.tries} tries")
            if _text(self.best) == before:
                return

    def _passes(self) -> Sequence[Callable[[], object]]:
        """Whole stories first, then single steps, then what the rest is made of."""
        return (
            lambda: self._most(leaving.groups_of(self.best), leaving.without_groups),
            lambda: self._most(range(len(self.best["steps"])), leaving.without_steps),
            self._parts,
            lambda: self._most(leaving.task_fields(self.best), leaving.without_task_fields),
            lambda: self._most(leaving.fields(self.best), without_paths),
            self._values,
            self._time,
        )

    # -- trying -------------------------------------------------------------------------------------------------------
    def _better(self, candidate: Document) -> bool:
        """Take a candidate when it still fails. Raises _EnoughError when no more may be tried."""
        text = _text(candidate)
        if text in self._seen:
            return False
        if self.tries >= self._tries_max or time.process_time() - self._began_s >= self._cpu_s_max:
            raise _EnoughError
        self._seen.add(text)
        self.tries += 1
        if not self._fails(candidate):
            return False
        self.best = candidate
        return True

    def _most(self, items: Sequence[_Item], change: Callable[[Document, Sequence[_Item]], Document]) -> None:
        """Make as many of the changes as possible: in ever smaller parts of those that are left."""
        base, made, rest = self.best, list[_Item](), list(items)
        size = len(rest)
        while size and rest:
            place = 0
            while place < len(rest):
                part = rest[place : place + size]
                if self._better(change(base, [*made, *part])):
                    made += part
                    del rest[place : place + size]
                else:
                    place += size
            size = min(size, len(rest)) // 2 if size > 1 else 0

    # -- passes -------------------------------------------------------------------------------------------------------
    def _cut_off(self, ends_s: float) -> None:
        until_s = math.ceil(ends_s) + AFTER_S
        if until_s < self.best["until"]:
            steps = [step for step in self.best["steps"] if step["at"] <= ends_s]
            self._better({**self.best, "until": until_s, "steps": steps})

    def _parts(self) -> None:
        for kind, change in leaving.PARTS.items():
            self._most(leaving.names_of(self.best, kind), change)

    def _values(self) -> None:
        for lower in (lambda _value: 1, lambda value: value // 2):
            self._replace(lambda path, value, lower=lower: lower(value) if _is_count(path, value) else value)  # type: ignore[misc]  # bound per turn
        for digits in (0, 1):
            self._replace(lambda path, value, digits=digits: _rounded(path, value, digits))  # type: ignore[misc]  # bound per turn

    def _replace(self, simpler: Callable[[Path, Any], Any]) -> None:
        """Put simpler values in place of as many as possible."""
        found = [(path, simpler(path, value)) for path, value in leaves(self.best)]
        known = dict(leaves(self.best))
        self._most([(path, value) for path, value in found if value != known[path]], replaced)

    def _time(self) -> None:
        """Begin at 0 and end soon after the last step."""
        steps = self.best["steps"]
        first_s = min((step["at"] for step in steps), default=0)
        if first_s > 0:
            moved = [{**step, "at": _short(step["at"] - first_s)} for step in steps]
            self._better({**self.best, "until": _short(self.best["until"] - first_s), "steps": moved})
        last_s = max((step["at"] for step in self.best["steps"]), default=0)
        for part in PARTS:
            until_s = math.ceil(last_s + (self.best["until"] - last_s) * part) + AFTER_S
            if until_s < self.best["until"] and self._better({**self.best, "until": until_s}):
                return


def _text(document: Document) -> str:
    return json.dumps(document, sort_keys=True)


def _short(seconds: float) -> float:
    rounded = round(seconds, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def _is_count(path: Path, value: Any) -> bool:
    return path[-1] in COUNTS and isinstance(value, int) and not isinstance(value, bool) and value > 1


def _rounded(path: Path, value: Any, digits: int) -> Any:
    """Durations and moments with fewer places, never rounded to nothing."""
    name = str(path[-1])
    if not isinstance(value, float) or not (name == "at" or name.endswith("_s") or name == "seconds"):
        return value
    nearer = _short(round(value, digits))
    return nearer if nearer or name == "at" else value
