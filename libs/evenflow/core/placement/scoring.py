"""How well a member fits on each node that can hold it: one exact integer, lower is better.

Best fit, packing first. In order of weight: what it costs (only when cost is the objective), what is left of the
shared device, how many milli-devices of the node are free, how many cores. So shares fill devices, devices fill nodes,
and work without devices goes where no device would be locked in. The first node by name wins a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from evenflow.core.fleet.columns import CPU, DEVICES
from evenflow.core.fleet.scratch import Scratch
from evenflow.core.fleet.table import Integers
from evenflow.core.units import MILLI

if TYPE_CHECKING:
    from evenflow.core.placement.classes import DemandClass

#: The score of a node that can't take the member.
INFEASIBLE: Final = np.iinfo(np.int64).max

CPU_BITS: Final = 28
DEVICES_BITS: Final = 22
PRICE_SHIFT: Final = CPU_BITS + DEVICES_BITS
RANK_MAX: Final = (1 << 12) - 1
CPU_MAX: Final = (1 << CPU_BITS) - 1


def scores(scratch: Scratch, demand: DemandClass, rows: Integers | None) -> Integers:
    """Scores of `rows` (all when None) for one member of a class."""
    amounts, possible = scratch.amounts, demand.possible
    if rows is not None:
        amounts, possible = amounts.take(rows, axis=1), possible.take(rows)
    able = np.logical_and.reduce(amounts >= demand.vector)
    able &= possible
    score = (amounts[DEVICES] << CPU_BITS) + np.minimum(amounts[CPU], CPU_MAX)
    if demand.share is not None and demand.memory is not None:
        left = _left_of_device(scratch, demand.share, demand.memory, rows)
        able &= left <= MILLI
        if demand.price_rank is None:
            score += left << PRICE_SHIFT
    if demand.price_rank is not None:
        rank = demand.price_rank if rows is None else demand.price_rank.take(rows)
        score += rank << PRICE_SHIFT
    return np.where(able, score, INFEASIBLE)


def _left_of_device(scratch: Scratch, share: Integers, memory: Integers, rows: Integers | None) -> Integers:
    """What would be left of the fullest device that can take the share; more than a device where none can."""
    devices, room = scratch.devices, scratch.device_memory
    if rows is not None:
        devices, room = devices.take(rows, axis=1), room.take(rows, axis=1)
        share, memory = share.take(rows), memory.take(rows)
    left = devices - share
    fits = (left >= 0) & (room >= memory)
    least: Integers = np.where(fits, left, 2 * MILLI).min(axis=0)
    return least
