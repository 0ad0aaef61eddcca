"""What is said of a queue: what it is promised, what it may borrow and lend, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

ROOT: Final = "root"


@dataclass(frozen=True, slots=True)
class Limits:
    """An amount per dimension; None = no limit in it."""

    cpu_milli: int | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    devices_milli: int | None = None


UNLIMITED: Final = Limits()
NOTHING: Final = Limits(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class QueueDescription:
    """One queue of the tree under `root`.

    `guaranteed` is what it can always have back; 0 where nothing is said. `limit` is the most it may hold with all that
    it borrows, `borrowing_limit` the most beyond its guarantee, `lending_limit` the most of its guarantee that others
    may use. `weight_milli` 1,000 = weight 1. `order`: strict = the head blocks those behind it.
    """

    id: str
    parent: str | None = ROOT
    guaranteed: Limits = NOTHING
    borrowing_limit: Limits = UNLIMITED
    lending_limit: Limits = UNLIMITED
    limit: Limits = UNLIMITED
    weight_milli: int = 1_000
    order: Literal["default", "strict"] = "default"
    waiting_limit: int = 100_000
    budget_micro: int | None = None
