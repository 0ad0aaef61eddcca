"""How long a task would run somewhere and what that would cost, before it starts. Exact integers.

Known is what the submitter said: the work of a simulated run at relative speed 1, or the declared bound, which counts
for the task's home and scales with the ratio of speeds elsewhere. Nothing said: an hour, for comparisons of time only.
"""

from __future__ import annotations

from typing import Final

from evenflow.core.demand.task import Resources, Task
from evenflow.core.fleet.catalogue import SPEED_ONE_PPM, relative_speed_ppm
from evenflow.core.fleet.table import Rate
from evenflow.core.placement.feasibility import asks_device
from evenflow.core.placement.plan import Demand
from evenflow.core.units import MILLI, MS_PER_HOUR, divide_half_even

#: Run time assumed, in comparisons only, for a task that says nothing about it.
UNKNOWN_RUN_MS: Final = 3_600_000

PPM: Final = 1_000_000


def speed_ppm(task: Task, model: str) -> int:
    """Relative speed of a node with devices of `model` for a task; work without devices runs at 1 everywhere."""
    if not model or not asks_device(task.resources_of(0).devices):
        return SPEED_ONE_PPM
    return relative_speed_ppm(model, task.workload)


def run_ms(demand: Demand, model: str, home_model: str | None = None) -> int | None:
    """Run time on a node with devices of `model`, rounded up; None when nothing was said.

    Work already saved by a checkpoint is not done again. A declared bound holds at `home_model`, by default at `model`.
    """
    task = demand.task
    speed = speed_ppm(task, model)
    if task.run is not None and task.run.work_ms > 0:
        return -(-max(task.run.work_ms - demand.progress_ms, 0) * SPEED_ONE_PPM // speed)
    if task.declared_ms is not None:
        left = max(task.declared_ms - demand.progress_ms, 0)
        return -(-left * speed_ppm(task, model if home_model is None else home_model) // speed)
    return None


def run_cost_micro(asked: Resources, devices_milli: int, rate: Rate, duration_ms: int) -> int:
    """What one member costs for a run: its devices by the node's price, or its cores if it has no device."""
    if devices_milli:
        amount = rate.price_per_hour_micro * devices_milli * duration_ms
    else:
        amount = rate.cpu_price_per_hour_micro * asked.cpu_milli * duration_ms
    return divide_half_even(amount, MILLI * MS_PER_HOUR)


def charged_micro(amount_micro: int, charge_ppm: int) -> int:
    """An amount as far as the policy charges it."""
    return amount_micro if charge_ppm == PPM else divide_half_even(amount_micro * charge_ppm, PPM)


def break_even_bytes(bandwidth_bits: int, stay_ms: int, cross_without_transfer_ms: int) -> int:
    """The volume below which moving data to run elsewhere is faster than staying: rate × the time to spare.

    Formula: data locality, D* = rate × (T_stay − T_cross without transfer).
    """
    return max(bandwidth_bits * (stay_ms - cross_without_transfer_ms), 0) // 8_000
