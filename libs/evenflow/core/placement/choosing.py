"""From a chosen node to a place: which devices, what is held, and taking it from the scratch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenflow.core.demand.task import Resources
from evenflow.core.fleet.table import Integers, Mask, Rate
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.feasibility import share_named
from evenflow.core.placement.gang import Seating
from evenflow.core.placement.plan import Demand, Place
from evenflow.core.placement.policy import Policy
from evenflow.core.pricing.estimate import UNKNOWN_RUN_MS, charged_micro, run_cost_micro, run_ms
from evenflow.core.units import MILLI


def take_place(
    scope: Scope,
    demand: DemandClass,
    row: int,
    member: int,
    devices: tuple[tuple[int, int], ...] | None = None,
    staged_bytes: int = 0,
) -> Place:
    """Give one member its place on a node that can hold it, and take it from the scratch."""
    scratch, asked = scope.scratch, demand.asked
    table = scratch.table
    if devices is None:
        devices = demand.devices_for(scratch, row)
    memory = demand.device_memory_at(row) if devices else 0
    disk = asked.disk_bytes + staged_bytes
    if demand.checks_memory and demand.shares_device:
        scratch.is_skewed = True
    scratch.take(row, (asked.cpu_milli, asked.memory_bytes, disk), devices, memory)
    return Place(
        member,
        table.ids[row],
        table.sites[row],
        devices,
        asked.cpu_milli,
        asked.memory_bytes,
        disk,
        table.prices_micro[row],
        table.cpu_prices_micro[row],
        memory,
    )


def take_seats(
    scope: Scope, demands: tuple[DemandClass, ...], seating: Seating, staged_bytes: int = 0
) -> tuple[Place, ...]:
    """Give every member of a gang its seat. Staged data lie with member 0."""
    places = []
    for member, (demand, row) in enumerate(zip(demands, seating.rows, strict=True)):
        devices = None
        if seating.devices is not None:
            share = demand.share_at(row)[0] if demand.shares_device else MILLI
            devices = tuple((index, share) for index in seating.devices[member])
        places.append(take_place(scope, demand, row, member, devices, 0 if member else staged_bytes))
    return tuple(places)


def devices_milli_at(demand: DemandClass, row: int) -> int:
    """Milli-devices that a member holds on a node."""
    return demand.share_at(row)[0] if demand.shares_device else demand.asked.devices.total_milli


def work_cost_micro(
    scope: Scope,
    demand: Demand,
    classes: tuple[DemandClass, ...],
    rows: tuple[int, ...],
    policy: Policy,
    home_model: str | None = None,
) -> int | None:
    """What the run of all members would be charged on these nodes; None when nobody knows how long it runs.

    The slowest member sets the run time. `home_model` is where a declared bound holds, by default on each node itself.
    """
    table = scope.scratch.table
    rates: list[Rate] = [table.rates[table.rate[row]] for row in rows]
    durations = [run_ms(demand, rate.model, home_model) for rate in rates]
    known = [duration for duration in durations if duration is not None]
    if len(known) < len(durations) or not known:
        return None
    return sum(
        charged_micro(
            run_cost_micro(member.asked, devices_milli_at(member, row), rate, max(known)),
            policy.billing.charge_ppm.work,
        )
        for member, row, rate in zip(classes, rows, rates, strict=True)
    )


def over_budget(scope: Scope, demand: Demand, kind: DemandClass, policy: Policy) -> Mask:
    """Nodes where one member's run would be charged more than the budget; none if nobody knows how long it runs."""
    table, budget = scope.scratch.table, demand.task.budget_micro
    over: Mask = np.zeros(len(table), dtype=np.bool_)
    if budget is None:
        return over
    whole: Integers = np.full(len(table), kind.asked.devices.total_milli, dtype=np.int64)
    taken = kind.share_on()[0] if kind.shares_device else whole
    for number, rate in enumerate(table.rates):
        duration = run_ms(demand, rate.model)
        if duration is None:
            continue
        alike = table.rate == number
        shares = np.unique(taken[alike])
        for share in shares:
            cost = run_cost_micro(kind.asked, int(share), rate, duration)
            if charged_micro(cost, policy.billing.charge_ppm.work) > budget:
                over |= alike & (taken == share)
    return over


def costs_by_rate(rates: Sequence[Rate], demand: Demand, asked: Resources) -> tuple[int, ...]:
    """What the run would cost at each rate of a table, for tasks that want the cheapest."""
    named = asked.devices.count or share_named(asked.devices)
    devices = asked.devices.total_milli if named else MILLI if asked.devices.memory_bytes else 0
    durations = [run_ms(demand, rate.model) for rate in rates]
    return tuple(
        run_cost_micro(asked, devices, rate, UNKNOWN_RUN_MS if duration is None else duration)
        for rate, duration in zip(rates, durations, strict=True)
    )
