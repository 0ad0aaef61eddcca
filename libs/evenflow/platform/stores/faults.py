"""Faults of a simulated store: what the scenario verb `store` switches on, and the giving way around each effect.

Order around one call: give way, faults that stop it, the effect (or not, when swallowed), give way, answer (or not,
when lost). So a crash at any step of the loop meets "not done", "done and not known" and "done".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from evenflow.core.errors import Refused, Unavailable

Gap = Callable[[], Awaitable[None]]
T = TypeVar("T")


async def no_gap() -> None:
    """Give way not at all."""


@dataclass(slots=True)
class _Refusal:
    match: Mapping[str, object]
    left: int


class Faults:
    """The switches of one store. `times` counts calls; nothing is on at first."""

    def __init__(self, store: str, gap: Gap = no_gap) -> None:
        self._store = store
        self._gap = gap
        self._down = False
        self._read_only = False
        self._refusals: list[_Refusal] = []
        self._lost = 0
        self._swallowed = 0

    def down(self) -> None:
        """From now on every call raises Unavailable."""
        self._down = True

    def up(self) -> None:
        """Answer again, and take writes again; what was refused, lost or swallowed by count stays."""
        self._down = False
        self._read_only = False

    def end(self) -> None:
        """Everything is off again, what was to be refused, lost or swallowed by count as well."""
        self.up()
        self._refusals.clear()
        self._lost = self._swallowed = 0

    def read_only(self) -> None:
        """From now on every write raises Unavailable; reads go on."""
        self._read_only = True

    def refuse(self, match: Mapping[str, object], times: int = 1) -> None:
        """Refuse the next `times` writes whose named values all equal those of `match`; {} matches every write."""
        self._refusals.append(_Refusal(dict(match), times))

    def lose_answers(self, times: int = 1) -> None:
        """Apply the next `times` writes and raise Unavailable for them all the same."""
        self._lost += times

    def swallow(self, times: int = 1) -> None:
        """Acknowledge the next `times` writes and keep nothing of them."""
        self._swallowed += times

    async def read(self, effect: Callable[[], T]) -> T:
        """Run a reading effect between two gaps."""
        await self._gap()
        self._check_up()
        answer = effect()
        await self._gap()
        return answer

    async def write(self, subjects: Sequence[Mapping[str, object]], effect: Callable[[], T], swallowed: T) -> T:
        """Run a writing effect between two gaps; `swallowed` is the answer when nothing is kept.

        A refusal looks at every subject, so one document can make its whole batch refused.
        """
        await self._gap()
        self._check_up()
        if self._read_only:
            raise Unavailable(f"{self._store} takes no writes", store=self._store)
        for refusal in self._refusals:
            if refusal.left > 0 and any(_matches(refusal.match, subject) for subject in subjects):
                refusal.left -= 1
                raise Refused(f"{self._store} refuses this write", store=self._store)
        if self._swallowed > 0:
            self._swallowed -= 1
            answer = swallowed
        else:
            answer = effect()
        await self._gap()
        if self._lost > 0:
            self._lost -= 1
            raise Unavailable(f"{self._store}: no answer; the write may be done", store=self._store)
        return answer

    def _check_up(self) -> None:
        if self._down:
            raise Unavailable(f"{self._store} is away", store=self._store)


def _matches(match: Mapping[str, object], subject: Mapping[str, object]) -> bool:
    return all(subject.get(name) == value for name, value in match.items())
