"""Whether a task runs where its data lie or crosses to another site, with every term of the arithmetic kept.

    gain = (wait here + run here) − (max(transfer in, wait there) + run there + transfer out)

in time, or the difference of what both would be charged when the objective is cost. A task crosses when the gain
exceeds the margin × what staying is worth; the margin grows with the uncertainty of the links, up to twice. Equal is
not more: a tie stays with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from evenflow.core.fleet.hauls import Haul, Hauls
from evenflow.core.fleet.links import CERTAIN_PPM
from evenflow.core.fleet.snapshot import Snapshot
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.placement.choosing import work_cost_micro
from evenflow.core.placement.classes import DemandClass, Scope
from evenflow.core.placement.forecast import Forecast
from evenflow.core.placement.gang import Seating
from evenflow.core.placement.plan import Crossing, Demand
from evenflow.core.placement.policy import Policy
from evenflow.core.pricing.estimate import PPM, UNKNOWN_RUN_MS, charged_micro, run_ms

#: Stands for "never" where the terms need a number: ten years.
NEVER_MS: Final = 315_360_000_000

Seat = Callable[[str, int], Seating | None]


@dataclass(frozen=True, slots=True)
class Option:
    """Running at one site: `seating` None = not now, but after `wait_ms`. `cost_micro` None = nobody knows."""

    site: str
    haul: Haul
    seating: Seating | None
    wait_ms: int
    run_ms: int
    cost_micro: int | None

    @property
    def time_ms(self) -> int:
        """From now to the end, output delivered."""
        return max(self.haul.in_ms, self.wait_ms) + self.run_ms + self.haul.out_ms


@dataclass(frozen=True, slots=True)
class Choice:
    """What came out. `option` None = wait. `obstacles` say why a site was not taken; `home` is the best to stay."""

    option: Option | None
    crossing: Crossing | None
    obstacles: dict[str, Reason] = field(default_factory=dict)
    home: str | None = None


class Crossings:
    """Decides for tasks with data within one round."""

    def __init__(self, scope: Scope, snapshot: Snapshot, policy: Policy, now_ms: int) -> None:
        self._scope = scope
        self._policy = policy
        self.hauls = Hauls(snapshot, scope.regions.sites, keep_copy=policy.crossing.keep_copy)
        self.forecast = Forecast(scope, snapshot, now_ms)

    def choose(self, demand: Demand, classes: tuple[DemandClass, ...], seat: Seat, *, has_room: bool = True) -> Choice:
        """The best site now, or to wait at home. `seat(site, staged bytes)` finds room there.

        Without `has_room` no site has any, which leaves only to say where home is.
        """
        obstacles: dict[str, Reason] = {}
        hauls: list[Haul] = []
        for site in self._scope.scratch.table.site_names:
            haul = self.hauls.at(demand, site)
            if haul.obstacle is not None:
                obstacles[site] = haul.obstacle
            else:
                hauls.append(haul)
        if not hauls:
            return Choice(None, None, obstacles)
        # Where every copy is; if no site has all, where the least must be brought.
        least = min(haul.read_bytes for haul in hauls)
        home = [haul for haul in hauls if haul.read_bytes == least]
        away = [haul for haul in hauls if haul.read_bytes != least]
        if not has_room:
            return Choice(None, None, obstacles, next(iter(self._possible(classes, home)), None))
        stay = self._stay(demand, classes, home, seat, obstacles)
        home_model = self._model(stay.seating, classes, stay.site) if stay else None
        options = [self._option(demand, classes, haul, seat(haul.site, haul.read_bytes), home_model) for haul in away]
        crossing = self._best(demand, [option for option in options if option is not None], obstacles)
        if stay is not None and crossing is None:
            return self._stays(demand, stay, None, obstacles)
        if crossing is None:
            return Choice(None, None, obstacles)
        terms = self._weigh(demand, stay, crossing)
        if terms.taken:
            return Choice(crossing, terms, obstacles, stay.site if stay else None)
        obstacles.update(
            {option.site: Reason.CROSSING for option in options if option and option.site not in obstacles}
        )
        return self._stays(demand, stay, terms, obstacles)

    def _stays(
        self, demand: Demand, stay: Option | None, terms: Crossing | None, obstacles: dict[str, Reason]
    ) -> Choice:
        if stay is None or stay.seating is None:
            return Choice(None, terms, obstacles, stay.site if stay else None)
        if stay.haul.reads and terms is None:
            # No site has all the data: something moves wherever the task runs, and this is the least.
            terms = self._weigh(demand, stay, stay)
        return Choice(stay, terms, obstacles, stay.site)

    def _stay(
        self,
        demand: Demand,
        classes: tuple[DemandClass, ...],
        home: Sequence[Haul],
        seat: Seat,
        obstacles: dict[str, Reason],
    ) -> Option | None:
        """Staying with the data: at once if a home has room, else where room comes first; None = never."""
        now = [self._option(demand, classes, haul, seat(haul.site, haul.read_bytes), None) for haul in home]
        best = self._best(demand, [option for option in now if option is not None], obstacles)
        if best is not None:
            return best
        later = [self._later(demand, classes, haul) for haul in home if obstacles.get(haul.site) is not Reason.BUDGET]
        waiting = [option for option in later if option is not None]
        waiting = [option for option in waiting if self._affordable(demand, option)] or []
        return min(waiting, key=lambda option: (option.time_ms, option.site), default=None)

    def _later(self, demand: Demand, classes: tuple[DemandClass, ...], haul: Haul) -> Option | None:
        wait = self.forecast.wait_ms(demand, classes, haul.site)
        if wait is None:
            return None
        model = self._model(None, classes, haul.site)
        duration = run_ms(demand, model, model)
        rows = self._rows(classes, haul.site)
        cost = work_cost_micro(self._scope, demand, classes, rows, self._policy, model)
        return Option(haul.site, haul, None, wait, _or_unknown(duration), self._with_transfers(cost, haul))

    def _option(
        self,
        demand: Demand,
        classes: tuple[DemandClass, ...],
        haul: Haul,
        seating: Seating | None,
        home_model: str | None,
    ) -> Option | None:
        if seating is None:
            return None
        if haul.starts_anew:
            demand = replace(demand, progress_ms=0)
        table = self._scope.scratch.table
        models = [table.rates[table.rate[row]].model for row in seating.rows]
        home = models[0] if home_model is None else home_model
        durations = [run_ms(demand, model, home) for model in dict.fromkeys(models)]
        known = [duration for duration in durations if duration is not None]
        cost = work_cost_micro(self._scope, demand, classes, seating.rows, self._policy, home)
        duration = max(known) if known else None
        return Option(haul.site, haul, seating, 0, _or_unknown(duration), self._with_transfers(cost, haul))

    def _best(self, demand: Demand, options: Sequence[Option], obstacles: dict[str, Reason]) -> Option | None:
        """The best affordable option by the task's objective; the rest by time, then by the site's name."""
        affordable = []
        for option in options:
            if self._affordable(demand, option):
                affordable.append(option)
            else:
                obstacles[option.site] = Reason.BUDGET
        if demand.task.objective == "cost":
            return min(affordable, key=lambda option: (_money(option), option.time_ms, *_ties(option)), default=None)
        return min(affordable, key=lambda option: (option.time_ms, _money(option), *_ties(option)), default=None)

    def _affordable(self, demand: Demand, option: Option) -> bool:
        budget = demand.task.budget_micro
        return budget is None or option.cost_micro is None or option.cost_micro <= budget

    def _with_transfers(self, work_micro: int | None, haul: Haul) -> int | None:
        if work_micro is None:
            return None
        return work_micro + charged_micro(haul.price_micro, self._policy.billing.charge_ppm.transfer)

    def _possible(self, classes: tuple[DemandClass, ...], hauls: Sequence[Haul]) -> list[str]:
        """Sites with nodes that could hold every kind of member one day."""
        rows_of_site = self._scope.scratch.table.rows_of_site
        kinds = dict.fromkeys(classes)
        return [haul.site for haul in hauls if all(kind.possible[rows_of_site(haul.site)].any() for kind in kinds)]

    def _rows(self, classes: tuple[DemandClass, ...], site: str) -> tuple[int, ...]:
        """A row per member that could hold it at a site one day: the first by name."""
        rows = self._scope.scratch.table.rows_of_site(site)
        return tuple(int(rows[int(demand.possible[rows].argmax())]) for demand in classes)

    def _model(self, seating: Seating | None, classes: tuple[DemandClass, ...], site: str) -> str:
        table = self._scope.scratch.table
        row = seating.rows[0] if seating is not None else self._rows(classes, site)[0]
        return str(table.rates[table.rate[row]].model)

    def _weigh(self, demand: Demand, stay: Option | None, cross: Option) -> Crossing:
        """The terms of crossing, and whether it is taken."""
        task, haul = demand.task, cross.haul
        by_money = task.objective == "cost"
        margin = self._policy.crossing.margin_ppm
        margin += margin * (CERTAIN_PPM - min(haul.confidence_ppm, CERTAIN_PPM)) // CERTAIN_PPM
        kept = self._policy.crossing.keep_copy
        single = len(haul.reads) == 1
        volume = haul.read_bytes if single or kept else sum(read.bytes * read.reads for read in haul.reads)
        cross_cost = cross.cost_micro or 0
        stay_wait, stay_run, stay_cost = NEVER_MS, 0, cross_cost
        if stay is not None:
            stay_wait, stay_run, stay_cost = max(stay.wait_ms, stay.haul.in_ms), stay.run_ms, stay.cost_micro or 0
            stay_run += stay.haul.out_ms
        gain_ms = stay_wait + stay_run - cross.time_ms
        gain_micro = stay_cost - cross_cost
        if stay is None or stay is cross:
            taken = True
        elif by_money:
            taken = gain_micro * PPM > margin * stay_cost
        else:
            taken = gain_ms * PPM > margin * (stay_wait + stay_run)
        return Crossing(
            dataset=",".join(read.dataset for read in haul.reads),
            from_site=haul.reads[0].from_site if haul.reads else cross.site,
            to_site=cross.site,
            bytes=volume,
            reads=haul.reads[0].reads if single else 1,
            keep_copy=kept,
            bandwidth_bits=haul.bandwidth_bits,
            confidence_ppm=haul.confidence_ppm,
            transfer_in_ms=haul.in_ms,
            transfer_out_ms=haul.out_ms,
            stay_wait_ms=stay_wait,
            stay_run_ms=stay_run,
            cross_wait_ms=cross.wait_ms,
            cross_run_ms=cross.run_ms,
            stay_cost_micro=stay_cost,
            cross_cost_micro=cross_cost,
            transfer_cost_micro=charged_micro(haul.price_micro, self._policy.billing.charge_ppm.transfer),
            margin_ppm=margin,
            by_money=by_money,
            gain_ms=gain_ms,
            gain_micro=gain_micro,
            taken=taken,
        )


def _money(option: Option) -> int:
    return option.cost_micro if option.cost_micro is not None else 0


def _ties(option: Option) -> tuple[bool, str]:
    """Between equals: keep saved work, then the site whose name comes first."""
    return option.haul.starts_anew, option.site


def _or_unknown(duration_ms: int | None) -> int:
    return UNKNOWN_RUN_MS if duration_ms is None else duration_ms
