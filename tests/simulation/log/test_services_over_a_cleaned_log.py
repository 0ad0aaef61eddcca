"""The production services while their log is archived, expired and compacted under them, crashes and all.

At the end the leader's memory is what the compacted state topic gives back, with an image and without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evenflow.events import streams
from evenflow.placement.images import Images
from evenflow.placement.memory.capacity import Capacity
from evenflow.placement.memory.model import Model
from evenflow.placement.restoring import restore
from evenflow.platform.broker.embedded.archive import read_archive
from evenflow.platform.broker.embedded.records import DATA, LogRecord
from evenflow.platform.broker.embedded.storage.port import Change
from evenflow.platform.stores.memory import MemoryObjects
from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.world import running
from evenflow.sim.world.running import Run
from evenflow.sim.world.world import Pace, World

UPKEEP_MS = 700
EXPIRE = (streams.TELEMETRY, streams.PROBES, streams.RUNS, streams.ASSIGNMENTS, streams.ROUNDS)
RETENTION_MS = 45_000

WORLD = """
version: 1
name: cleaned
until: 190
sites: [{id: east, store: true}]
nodes: [{id: "n{i}", site: east, devices: {model: a100-80g, count: 2}, copies: 3, price_per_hour: "3.60"}]
queues: [{id: q, limit: {devices: 4}}]
steps:
  - {at: 0, service: {add: placement}}
  - at: 0
    repeat:
      every_s: 2
      times: 30
      submit: {id: "t{i}", queue: q, resources: {devices: {share: 0.5}}, run: {work_s: 5}}
  - {at: 1, submit: {id: g, members: 3, resources: {devices: {count: 1}}, run: {work_s: 20}, checkpoint: {every_s: 5}}}
  - {at: 6, service: {kill: placement, which: leader}}
  - {at: 12, node: {kill: n1}}
  - {at: 20, service: {pause: placement, which: leader}}
  - {at: 25, service: {restart: placement}}
  - {at: 32, node: {restart: n1}}
  - {at: 40, service: {restart: all}}
  - {at: 55, service: {kill: placement, which: leader}}
  - {at: 70, service: {restart: all}}
  - {at: 90, settle: {}}
expect:
  - {all: "t*", are: succeeded, by: 180}
  - {by: 180, task: g, is: succeeded}
  - {at: 185, queue: q, used: {devices: 0}}
"""


class CleanedWorld(World):
    """A world whose streams expire within the run, and which looks at its state topic near the end."""

    last: CleanedWorld

    async def open(self) -> None:
        CleanedWorld.last = self
        self.states: dict[str, str] = {}
        self.written: list[LogRecord] = []
        self.lost: list[str] = []
        self.archived_count = 0
        self._watch_writes(self._storage.write)
        await super().open()
        for stream in EXPIRE:
            configs = {**stream.configs, "retention.ms": str(RETENTION_MS)}
            self.log.alter(SimpleNamespace(name=stream.name, partitions=stream.partitions, configs=configs))
        self.at(187_000, self.look)

    def _watch_writes(self, write: Callable[[Change], None]) -> None:
        def watched(change: Change) -> None:
            write(change)
            self.written += [record for _, record in change.records]

        self._storage.write = watched

    async def look(self) -> None:
        """The leader's memory, and what a new leader would read now; nothing may happen in between."""
        leader = self.services.leader()
        assert leader is not None
        service = leader.runs
        model = service.leader.model
        while self.states.get("live") != model.digest():
            self.states["live"] = model.digest()
            own = replace(service.runtime, transport=self._transport(self.clock, self._ids))
            self.states["restored"] = await self.restored(own, service.settings)
            without = replace(own, objects=MemoryObjects())
            self.states["restored without an image"] = await self.restored(without, service.settings)
            await asyncio.sleep(0.1)
        self.task_count = len(model.tasks)
        for stream in EXPIRE:
            if stream.archive:
                await self.compare(stream)

    async def compare(self, stream: streams.Stream) -> None:
        """Archive and log together have what was ever committed."""
        for partition in self.log.topics[stream.name].partitions:
            kept = {r.offset: r.value async for r in read_archive(self.objects, stream.name, partition.number)}
            self.archived_count += len(kept)
            kept |= {r.offset: r.value for r in partition.read(partition.start, partition.next, 100_000) if not r.kind}
            here = [r for r in self.written if (r.topic, r.partition) == (stream.name, partition.number)]
            if kept != {r.offset: r.value for r in here if r.kind == DATA}:
                self.lost.append(f"{stream.name}/{partition.number}")

    async def restored(self, runtime, settings) -> str:
        model = Model(settings.pool, Capacity())
        await restore(runtime, settings, model, Images(runtime, settings.pool))
        return model.digest()


@pytest.mark.parametrize("seed", range(3))
def test_services_live_on_a_log_that_is_cleaned_all_the_time(seed, monkeypatch):
    """Proves that cleaning disturbs nobody: tasks end, rules hold, nothing is lost, the state topic gives the state."""
    monkeypatch.setattr(running, "World", CleanedWorld)
    result = Run(parse_scenario(WORLD.encode(), seed=seed), pace=Pace(lean=seed > 0, upkeep_ms=UPKEEP_MS)).go()
    world = CleanedWorld.last
    assert [broken.row() for broken in result.broken] == []
    assert [violation.row() for violation in result.violations] == []
    assert [line for line in result.lines if line[3] == "log not cleaned"] == []
    assert world.task_count == 31
    assert len(set(world.states.values())) == 1, world.states
    state = world.log.topics[streams.PLACEMENT_STATE.name].partitions[0]
    left = state.read(state.start, state.next, 100_000)
    assert len(left) < state.next // 4, "the state was not compacted"
    starts = [partition.start for stream in EXPIRE for partition in world.log.topics[stream.name].partitions]
    assert sum(start > 0 for start in starts) > 20, "nothing expired"
    assert world.archived_count > 50
    assert world.lost == []
