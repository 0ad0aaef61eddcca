"""The past of one subject: what it was from which moment on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Generic, TypeVar

_Moment = TypeVar("_Moment")


class History(Generic[_Moment]):
    """Values with the milliseconds from which they held, oldest first."""

    __slots__ = ("_times", "_values")

    def __init__(self) -> None:
        self._times: list[int] = []
        self._values: list[_Moment] = []

    def note(self, t_ms: int, value: _Moment) -> bool:
        """Keep a value if it differs from the last one; says whether it did."""
        if self._values and self._values[-1] == value:
            return False
        self._times.append(t_ms)
        self._values.append(value)
        return True

    def at(self, t_ms: int) -> _Moment | None:
        """What held after everything of time ≤ t_ms; None before the first."""
        place = bisect_right(self._times, t_ms)
        return self._values[place - 1] if place else None

    @property
    def last(self) -> _Moment | None:
        """The newest value."""
        return self._values[-1] if self._values else None

    @property
    def last_ms(self) -> int | None:
        """Since when the newest value holds."""
        return self._times[-1] if self._times else None

    def until(self, t_ms: int) -> Iterator[tuple[int, _Moment]]:
        """Every value entered at or before t_ms, with its time."""
        for time, value in zip(self._times, self._values, strict=True):
            if time > t_ms:
                return
            yield time, value

    def __len__(self) -> int:
        return len(self._values)
