"""One run of one scenario: the course of the world, judged record by record, written to its files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.hosting.registry import SERVICES, ServiceKind
from evenflow.inventory.settings import InventorySettings
from evenflow.sim.expectations.runner import Broken, Judge
from evenflow.sim.guard import guarded
from evenflow.sim.invariants import Guardian, Violation
from evenflow.sim.loop import Stuck
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen
from evenflow.sim.scenario.file import Scenario, Step
from evenflow.sim.scenario.outcome import ScenarioWrong
from evenflow.sim.seam import check_versions
from evenflow.sim.timeline import FORMAT, RunFiles, counted, final_states
from evenflow.sim.verbs import VERBS
from evenflow.sim.world.composition import Composition
from evenflow.sim.world.hosting import Hosted, is_fault
from evenflow.sim.world.records.unread import unread
from evenflow.sim.world.world import FINE, Pace, World, secret_of, token_of

#: After the last moment everything of that moment is still let through.
LAST_MOMENT_S: Final = 0.0004
#: How often the world looks whether a placement leads.
LOOK_S: Final = 1.0
#: How often a watcher is told unless it says otherwise, in virtual time.
WATCH_MS: Final = 300_000
#: What a watcher's moments are beside the beat of everything else: it shares none, so it changes no order.
WATCH_ASIDE_S: Final = 0.000_37
#: Time within which every group has read what was written, once all faults are over.
READ_WITHIN_MS: Final = 10_000
#: Time within which the checkpoints of an ended task are removed.
CLEAN_WITHIN_MS: Final = 30_000
#: Told the virtual milliseconds and what was observed so far; True ends the run.
Watch = Callable[[int, Observation], bool]
#: Time that a new leader has before waiting tasks must be explained again.
TAKE_OVER_MS: Final = 10_000


@dataclass(slots=True)
class RunResult:
    """What came of a run. `broken` are expectations that do not hold, in the order of their moments."""

    name: str
    seed: int
    broken: list[Broken]
    violations: list[Violation]
    summary: dict[str, Any]
    exits: list[str] = field(default_factory=list)
    unhandled: list[str] = field(default_factory=list)
    lines: list[tuple[int, str, str, str, dict[str, Any]]] = field(default_factory=list)
    reached: dict[str, int] = field(default_factory=dict)
    records: int = 0

    @property
    def ok(self) -> bool:
        """Whether everything held, and nothing was left unhandled."""
        return not (self.broken or self.violations or self.unhandled)


class Run:
    """Runs a scenario once. Raises ScenarioWrong when a step asks for something that is not there."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        out: Path | None = None,
        services: Mapping[str, ServiceKind] = SERVICES,
        pace: Pace = FINE,
        watch: Watch | None = None,
        watch_ms: int = WATCH_MS,
    ) -> None:
        check_versions()
        self._watch, self._watch_ms = watch, watch_ms
        self._scenario = scenario
        self._pace = pace
        self._composition = Composition(
            scenario.settings,
            scenario.policy,
            services,
            {"gateway": {"token": token_of(scenario.seed), "secret": secret_of(scenario.seed)}},
        )
        self._files = None if out is None else RunFiles(out)
        silence = self._composition.settings_for(InventorySettings)
        self._guardian = Guardian(silence.silence_tolerance_ms, silence.blind_max_ms)
        self._judge = Judge(scenario.expectations, scenario.until_ms)
        self._exits: list[str] = []
        self._problem: BaseException | None = None
        self._world: World
        self._stop: asyncio.Future[None]

    def go(self) -> RunResult:
        """The whole run."""
        with guarded():
            self._world = world = World(self._scenario, self._composition, self._see, self._report, self._pace)
            self._composition.check_all_used()
            try:
                world.loop.run_until_complete(world.loop.create_task(self._main(), context=world.context))
            except Stuck as stuck:
                self._guardian.violations.append(Violation("INV10", world.now_ms(), str(stuck)))
            finally:
                world.close()
        if self._problem is not None:
            raise self._problem
        return self._finish()

    @property
    def settled_ms(self) -> int | None:
        """When the faults ended, in milliseconds of the run; None before."""
        return self._world.settled_ms

    # -- during the run -----------------------------------------------------------------------------------------------
    async def _main(self) -> None:
        world = self._world
        self._stop = world.loop.create_future()
        await world.open()
        for at_ms, steps in groupby(self._scenario.steps, key=lambda step: step.at_ms):
            chosen = list(steps)
            world.at(at_ms, lambda chosen=chosen: self._steps(chosen))  # type: ignore[misc]  # bound per turn
        world.later(0, self._look)
        if self._watch is not None:
            self._watch_later(WATCH_ASIDE_S)
        ends = world.loop.create_task(self._end())
        await asyncio.wait({ends, self._stop}, return_when=asyncio.FIRST_COMPLETED)
        if not ends.done() and self._problem is None and world.settled_ms is not None:
            await self._look_for_remains()  # A watcher ended the run early.

    def _show(self) -> None:
        """Tell the watcher how far the run is; it may end it early."""
        if self._watch is None or self._watch(self._world.now_ms(), self._world.model):
            if not self._stop.done():
                self._stop.set_result(None)
            return
        self._watch_later()

    def _watch_later(self, aside_s: float = 0.0) -> None:
        """Turn to the watcher after its time; a run that is watched is the same as one that is not."""
        world = self._world
        world.loop.call_later(self._watch_ms / 1000 + aside_s, self._show, context=world.context)

    async def _end(self) -> None:
        await self._world.until(self._scenario.until_ms)
        await asyncio.sleep(LAST_MOMENT_S)
        if self._world.settled_ms is not None:
            await self._look_for_remains()

    async def _look_for_remains(self) -> None:
        """After faults are over nobody leaves records unread, and ended tasks leave nothing in the store."""
        world = self._world
        found = [("INV10", text) for text in unread(world.log, world.clock.now_ms() - READ_WITHIN_MS)]
        found += [("INV4", text) for text in world.data.remains(world.now_ms() - CLEAN_WITHIN_MS)]
        self._guardian.violations += [Violation(name, world.now_ms(), text, at_end=True) for name, text in found]

    async def _steps(self, steps: Sequence[Step]) -> None:
        """Steps of one moment, in file order."""
        for step in steps:
            try:
                await VERBS[step.verb].act(self._world, step.arguments)
            except FieldRefused as refusal:
                if self._scenario.skips_impossible_steps:
                    continue
                self._fail(ScenarioWrong(f"steps[{step.number}].{step.verb}", str(refusal)))
            except Exception as error:  # noqa: BLE001  whatever went wrong must end the run, not vanish in a task
                self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._problem = self._problem or error
        if not self._stop.done():
            self._stop.set_result(None)

    def _see(self, record: Seen) -> None:
        """Every record: judge what was due before, fold it, look at the invariants, write it."""
        try:
            self._judge.before(record.t_ms, self._world.model)
            self._world.model.apply(record)
            self._world.see(record)
            self._guardian.after(self._world.model, record)
            if self._files is not None:
                self._files.record(record)
        except Exception as error:  # noqa: BLE001  an error of the observer must not look like one of the log
            self._fail(error)

    def _report(self, hosted: Hosted, error: BaseException | None) -> None:
        """A process ended untold."""
        why = hosted.exits[-1] if hosted.exits else ""
        self._exits.append(f"{self._world.now_ms()} {hosted.name}: {why}")
        if hosted.service != "agent":
            self._world.model.count("exited", node=hosted.name)
        if is_fault(error):
            self._guardian.survival.ended_untold(hosted.name, why)

    def _look(self) -> None:
        """Excuse missing reasons while nobody leads."""
        leader = self._world.services.leader()
        if leader is None or leader.process is None or not leader.process.running:
            until_ms = self._world.now_ms() + TAKE_OVER_MS
            self._guardian.reasons.excused_until_ms = self._guardian.quota.excused_until_ms = until_ms
        self._world.later(round(LOOK_S * 1000), self._look)

    # -- afterwards ---------------------------------------------------------------------------------------------------
    def _finish(self) -> RunResult:
        world, guardian = self._world, self._guardian
        self._judge.finish(world.model)
        world.check_kept()
        guardian.intake.committed = world.committed
        guardian.finish(world.model, settled=world.settled_ms is not None)
        unhandled = [_shown(context) for context in world.loop.errors]
        for text in unhandled:
            guardian.violations.append(Violation("INV10", world.now_ms(), f"nobody handled: {text}"))
        summary = {
            "format": FORMAT,
            "versions": {"evenflow": _version()},
            "name": self._scenario.name,
            "seed": self._scenario.seed,
            "until": self._scenario.until_ms / 1000,
            "settled": None if world.settled_ms is None else world.settled_ms / 1000,
            "records": world.model.record_count,
            "counts": counted(world.model),
            "states": final_states(world.model),
            "expectations": [broken.row() for broken in self._judge.broken],
            "violations": [violation.row() for violation in guardian.violations],
        }
        if self._files is not None:
            self._files.finish(world.model, summary)
        return RunResult(
            name=self._scenario.name,
            seed=self._scenario.seed,
            broken=self._judge.broken,
            violations=guardian.violations,
            summary=summary,
            exits=self._exits,
            unhandled=unhandled,
            lines=list(world.lines.kept),
            reached=dict(world.services.reached),
            records=world.model.record_count,
        )


def _shown(context: dict[str, Any]) -> str:
    error = context.get("exception")
    message = str(context.get("message")).partition("(<")[0]  # what follows names places in memory
    return f"{message}: {type(error).__name__}: {error}"


def _version() -> str:
    try:
        return version("evenflow")
    except PackageNotFoundError:
        return "0"
