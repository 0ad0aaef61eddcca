"""How well a member fits on each node that can hold it: one exact integer, lower is better.

Best fit, packing first. In order of weight: what it costs (only when cost is the objective), what is left of the
shared device, how many milli-devices of the node are free, how many cores. So shares fill devices, devices fill nodes,
and work without devices goes where no device would be locked in. The first node by name wins a tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from evenflow.core.fleet.scratch import ROOM_BITS, Scratch
from evenflow.core.fleet.table import Integers
from evenflow.core.units import MILLI

if TYPE_CHECKING:
    from evenflow.core.placement.classes import DemandClass

#: The score of a node that can't take the member.
INFEASIBLE: Final = np.iinfo(np.int64).max

#: A share that no device of the node can take.
CANNOT: Final = np.iinfo(np.uint32).max
#: Ranks of cost that are told apart.
RANK_MAX: Final = (1 << 12) - 1


def scores(scratch: Scratch, demand: DemandClass, rows: Integers | None) -> Integers:
    """Scores of `rows` (all when None) for one member of a class."""
    amounts, possible, score = scratch.amounts, demand.possible, scratch.room
    if rows is not None:
        amounts, possible, score = amounts.take(rows, axis=1), possible.take(rows), score.take(rows)
    able = np.logical_and.reduce(amounts >= demand.vector)
    able &= possible
    if demand.shares_device:
        left = _left_of_device(scratch, demand, rows)
        able &= left <= MILLI
        if demand.price_rank is None:
            score = score + np.left_shift(left, ROOM_BITS, dtype=np.int64)
    if demand.price_rank is not None:
        rank = demand.price_rank if rows is None else demand.price_rank.take(rows)
        score = score + (rank << ROOM_BITS)
    return np.where(able, score, INFEASIBLE)


def _left_of_device(scratch: Scratch, demand: DemandClass, rows: Integers | None) -> npt.NDArray[np.uint32]:
    """What would be left of the fullest device that can take the share; more than a device where none can."""
    asked = demand.asked.devices
    devices, room = scratch.devices, scratch.device_memory
    if rows is not None:
        devices = devices.take(rows, axis=1)
    if asked.share_milli and not demand.checks_memory and not scratch.is_skewed:
        # Below zero turns into a very large number, which is what "can't" must be here.
        alone: npt.NDArray[np.uint32] = np.minimum.reduce((devices - asked.share_milli).view(np.uint32))
        return alone
    share, memory = demand.share_on(slice(None) if rows is None else rows)
    left = (devices - share).astype(np.uint32)
    left[(room if rows is None else room.take(rows, axis=1)) < memory] = CANNOT
    least: npt.NDArray[np.uint32] = np.minimum.reduce(left)
    return least
