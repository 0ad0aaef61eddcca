"""Breaks R01: shares come back rounded down to sixteenths, so each round leaves a residue in the books."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from evenflow.core.fleet.columns import Fleet
from evenflow.core.fleet.holder import Holder
from evenflow.core.placement.plan import Place
from evenflow.core.queueing.quota import Queues
from evenflow.core.units import MILLI
from evenflow.testkit.mutants.replacing import replaced

_PARTS = 16
_apply, _free = Fleet._apply, Queues.free  # noqa: SLF001  the mutant works inside


def _rounded(milli: int) -> int:
    return milli * _PARTS // MILLI * MILLI // _PARTS


def _to_fleet(fleet: Fleet, place: Place, sign: int) -> None:
    if sign > 0:
        place = replace(place, devices=tuple((index, _rounded(milli)) for index, milli in place.devices))
    _apply(fleet, place, sign)


def _to_queue(self: Queues, holder: Holder) -> bool:
    held = self._holds.get(holder)
    if held is not None:
        queue_id, amount = held
        self._holds[holder] = (queue_id, amount._replace(devices_milli=_rounded(amount.devices_milli)))
    return _free(self, holder)


@contextmanager
def without_whole_return() -> Iterator[None]:
    """Shares that come back a little smaller, to their node and to their queue, while entered."""
    with replaced(Fleet, "_apply", _to_fleet), replaced(Queues, "free", _to_queue):
        yield
