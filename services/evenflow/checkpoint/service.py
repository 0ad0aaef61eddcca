"""Checkpoint's use-cases: verify what an agent says it saved, believe agents about damage, prune and sweep."""

from __future__ import annotations

import itertools
from typing import Any

from evenflow.checkpoint.ports import CheckpointStore
from evenflow.checkpoint.projection import Projection
from evenflow.checkpoint.settings import CheckpointSettings
from evenflow.core.errors import Unavailable
from evenflow.core.lifecycle.alerts import Alert
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptCheckpointed, AttemptReclaimed, AttemptStarted
from evenflow.events.contracts.checkpoint import CheckpointDamaged, CheckpointFact, CheckpointPruned, CheckpointVerified
from evenflow.events.contracts.platform import AlertRaised
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.observability.signals import CHECKPOINTS
from evenflow.platform.runtime import Runtime


class Checkpoints:
    """State and rules of one checkpoint process."""

    def __init__(self, runtime: Runtime, settings: CheckpointSettings, store: CheckpointStore) -> None:
        self._runtime = runtime
        self._settings = settings
        self._store = store
        self.projection = Projection()
        self.late_count = 0

    async def verify(self, body: AttemptCheckpointed, cause: Received) -> list[Fact]:
        """A saved checkpoint: read it whole and say what was found. One of a closed attempt counts for nothing."""
        entry = self.projection.of(body.tenant, body.task)
        key = (body.generation, body.checkpoint)
        if key in entry.good or key in entry.bad or key <= entry.pruned:
            return []
        if body.attempt <= entry.closed or entry.ended:
            self.late_count += 1
            self._count("late")
            self.projection.torn[body.tenant, body.task, body.generation] = None
            self._runtime.log.info(
                "checkpoint of an ended attempt ignored", task=f"{body.tenant}/{body.task}", attempt=body.attempt
            )
            return []
        fields = _fields(body)
        await self._runtime.point("checkpoint.before-verify")
        problem = await self._store.problem(CheckpointFact(**fields))
        await self._runtime.point("checkpoint.after-verify")
        if problem:
            return self._damaged(CheckpointDamaged(**fields, problem=problem), cause)
        verified = CheckpointVerified(**fields)
        self.projection.take(verified)
        self._count("verified")
        return [Fact(streams.CHECKPOINTS, verified, cause=cause)]

    def started(self, body: AttemptStarted, cause: Received) -> list[Fact]:
        """An attempt that resumed says which checkpoints it found damaged on the way (their manifests' paths)."""
        entry = self.projection.of(body.tenant, body.task)
        facts: list[Fact] = []
        for fact in [known for known in entry.good.values() if known.manifest in body.damaged]:
            damaged = CheckpointDamaged(**_fields(fact), problem="found damaged when resuming")
            facts += self._damaged(damaged, cause)
        return facts

    def reclaimed(self, body: AttemptReclaimed) -> None:
        """A member is proven gone: what one cut short wrote until now is swept once more. Member 0 alone writes."""
        if not body.leftover and not body.member:
            self.projection.gone((body.tenant, body.task, body.generation))

    def _damaged(self, body: CheckpointDamaged, cause: Received) -> list[Fact]:
        self.projection.take(body)
        self._count("damaged")
        subject = f"{body.tenant}/{body.task}/g{body.generation}/c{body.checkpoint}"
        alert = AlertRaised(
            name=Alert.CHECKPOINT_DAMAGED, subject=subject, message=body.problem, at_ms=self._runtime.clock.now_ms()
        )
        identity = f"damaged-{subject}"
        return [
            Fact(streams.CHECKPOINTS, body, cause=cause, id=identity),
            Fact(streams.ALERTS, alert, cause=cause, id=f"alert-{identity}"),
        ]

    def _count(self, outcome: str) -> None:
        self._runtime.metrics.of(CHECKPOINTS).record(1, outcome=outcome)

    async def prune(self) -> list[Fact]:
        """Periodic: remove all but the newest good ones of living tasks, and everything of ended ones.

        What was removed before the store went away is said all the same; the rest is the next step's.
        """
        doomed: list[CheckpointFact] = []
        for entry in list(self.projection.tasks.values()):
            newest_first = [entry.good[key] for key in sorted(entry.good, reverse=True)]
            doomed += newest_first if entry.ended else newest_first[self._settings.kept_count :]
            doomed += list(entry.bad.values()) if entry.ended or len(newest_first) >= self._settings.kept_count else []
        facts: list[Fact] = []
        for fact in doomed:
            try:
                await self._store.remove(fact)
            except Unavailable as error:
                self._runtime.log.warning("checkpoints not removed", problem=str(error))
                break
            pruned = CheckpointPruned(**_fields(fact))
            self.projection.take(pruned)
            self._count("removed")
            identity = f"pruned-{fact.tenant}/{fact.task}/g{fact.generation}/c{fact.checkpoint}"
            facts.append(Fact(streams.CHECKPOINTS, pruned, id=identity))
        return facts

    async def sweep(self) -> None:
        """Periodic: remove halves of checkpoints that closed generations left behind. Nobody ever heard of them.

        A store may answer and not do it, so a generation is done with when a look finds nothing.
        """
        for generation in list(itertools.islice(self.projection.torn, self._settings.swept_count_max)):
            tenant, task, number = generation
            try:
                count = await self._store.sweep(tenant, task, number, self.projection.known(generation))
            except Unavailable as error:
                self._runtime.log.warning("torn checkpoints not removed", problem=str(error))
                return
            self.projection.torn.pop(generation, None)
            if count:
                self.projection.torn[generation] = None
                self._runtime.log.info("torn checkpoints removed", task=f"{tenant}/{task}", count=count)


def _fields(body: AttemptCheckpointed | CheckpointFact) -> dict[str, Any]:
    return {name: getattr(body, name) for name in CheckpointFact.model_fields}
