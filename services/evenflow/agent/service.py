"""The agent's use-case: hold what is desired, state what happens.

Three loops run beside the members: heartbeats, the outbox's delivery, and the long poll whose every answer is followed
by one reconciliation. Members live on when the agent stops; the next one finds them in the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

from evenflow.agent.journal import Held, Phase, key_of, slot_of
from evenflow.agent.members import Means, Member
from evenflow.agent.ports import DesiredChange, DesiredItem, Surroundings
from evenflow.agent.receipts import Speaker, Statement
from evenflow.agent.requests import Requests
from evenflow.agent.saving import Saving
from evenflow.agent.settings import AgentSettings
from evenflow.agent.staging import Staging
from evenflow.agent.uplink import Uplink
from evenflow.core.demand.task import Task
from evenflow.core.errors import Ended, FieldRefused, Refused
from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause
from evenflow.core.lifecycle.node import DeviceState
from evenflow.core.running.reconciling import Act, Action, Wanted, reconcile
from evenflow.events.contract import Document
from evenflow.events.contracts.agent import (
    AttemptAccepted,
    AttemptRefused,
    AttemptStopped,
    DeviceLoad,
    NodeHeartbeat,
    Outcome,
    Receipt,
)
from evenflow.events.contracts.placement import AttemptDesired, DeviceShare
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.task_specification import parse_task

REFUSED_REMEMBERED_MAX: Final = 1_000
REVOKED_TIMEOUT_S: Final = 30.0
#: How far the pause between repetitions grows, in first pauses.
UNHEARD_PAUSE_GROWTH_MAX: Final = 8


class AgentService:
    """One node's agent; a `platform.service.Service`."""

    def __init__(self, around: Surroundings, settings: AgentSettings) -> None:
        self.name = f"agent-{around.node}"
        self._around = around
        self._settings = settings
        self._speaker = Speaker(around)
        self.uplink = Uplink(around, settings, self._speaker, load=self._load, revoked=self._revoked)
        staging = Staging(around, settings, self._speaker)
        self._means = Means(
            around, settings, self._speaker, staging, Saving(around, staging), self._changed, self.uplink.beat_now
        )
        self.members: dict[str, Member] = {}
        self._requests = Requests(around, self._speaker, self.members, self.uplink.beat_now)
        self._desired: dict[str, DesiredItem] = {}
        self._complete = False
        self._unheard: dict[str, tuple[int, int]] = {}
        self._newest: dict[str, int] = {}
        self._refused: dict[tuple[str, int, str], None] = {}
        self._wake = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ended: asyncio.Future[None] | None = None
        self._device_count = device_count(around.document)

    # --- a service ----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what the journal holds and begin; does not wait for the gateway."""
        self._ended = asyncio.get_running_loop().create_future()
        self._newest = self._around.disk.newest()
        for held in self._around.disk.members():
            self._live(held)
        self._spawn("heartbeats", self.uplink.beat())
        self._spawn("delivery", self.uplink.deliver())
        self._spawn("desired", self._poll())
        self._spawn("reconciling", self._reconcile_for_ever())
        self._around.log.info("agent started", node=self._around.node, held=len(self.members))

    async def stop(self) -> None:
        """Deliver what can be delivered within a bound, and leave; members live on."""
        self._means.staging.leaving = True
        delivery = self._tasks.pop("delivery", None)
        tasks = [task for task in [*self._tasks.values(), delivery] if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()
        await self._flush()
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    async def wait(self) -> None:
        """Return when stopped; raise what ended the agent otherwise."""
        if self._ended is not None:
            await asyncio.shield(self._ended)

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(self._settings.flush_timeout_ms / 1000):
                while self._around.disk.pending_count():
                    await self.uplink.deliver_batch()
        except Exception as error:  # noqa: BLE001  what stays is delivered by the next agent
            self._around.log.info("left with receipts to deliver", node=self._around.node, problem=repr(error))

    def _spawn(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._done(name, done))

    def _done(self, name: str, task: asyncio.Task[None]) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and self._ended is not None and not self._ended.done():
            if not isinstance(error, Ended):
                self._around.log.error("agent ends", node=self._around.node, part=name, problem=repr(error))
            self._ended.set_exception(error)

    # --- desired state ------------------------------------------------------------------------------------------------

    async def _poll(self) -> None:
        instance, revision, whole_ms = "", 0, 0
        while True:
            change = await self.uplink.desired(instance, revision)
            instance, revision = change.instance, change.revision
            now_ms = self._around.clock.monotonic_ms()
            if change.full:
                whole_ms = now_ms
            elif now_ms - whole_ms >= self._settings.whole_set_after_ms:
                instance, revision = "", 0  # whatever change went missing on the way is made good by the whole
            self._take(change)
            self._wake.set()
            await self._tell_again(now_ms)
            for request in change.requests:
                if self._requests.takes(request):
                    self._spawn(f"request {request.id}", self._requests.serve(request))

    def _take(self, change: DesiredChange) -> None:
        if change.full:
            self._desired = {}
            self._complete = True
        for item in change.items:
            if item.desired is None:
                self._desired.pop(item.key, None)
            elif item.desired.place.node == self._around.node:
                self._desired[key_of(item.desired)] = item

    async def _tell_again(self, now_ms: int) -> None:
        """Repeat the last receipt of what is gone from here and still desired: whoever decides did not hear it.

        A wish is withdrawn when its member is proven free, so nothing else has to acknowledge a receipt.
        """
        first = self._settings.unheard_after_ms
        gone = {key: one.held for key, one in self.members.items() if one.held.phase is Phase.RECLAIMED}
        waiting = [key for key in self._desired if key in gone]
        self._unheard = {key: self._unheard.get(key, (now_ms + first, first)) for key in waiting}
        if self._around.disk.pending_count():
            return
        for key, (due_ms, pause_ms) in self._unheard.items():
            if now_ms >= due_ms:
                longer_ms = min(pause_ms * 2, first * UNHEARD_PAUSE_GROWTH_MAX)
                self._unheard[key] = (now_ms + longer_ms, longer_ms)
                outcome = gone[key].outcome or Outcome(ended_as="stopped")
                body = self._speaker.reclaimed(gone[key].desired, outcome)
                await self._speaker.commit(Statement(body, gone[key].causation, gone[key].correlation))

    async def _reconcile_for_ever(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.reconcile()

    async def reconcile(self) -> None:
        """Bring what is held to what is desired; every action is written before it takes effect."""
        wanted = [
            Wanted(key, slot_of(item.desired), item.desired.attempt, item.desired.epoch, Wish(item.desired.wish))
            for key, item in self._desired.items()
            if item.desired is not None
        ]
        held = [member.held.summary() for member in self.members.values()]
        for action in reconcile(wanted, held, self._newest, complete=self._complete):
            try:
                await self._act(action)
            except (Refused, ValueError) as error:
                self._set_aside(action, error)

    def _set_aside(self, action: Action, error: Exception) -> None:
        """A wish that can't be followed, whatever is in it, keeps the node from nothing else; it is told once."""
        problem = " ".join(str(error).split())[:500]
        if self._first_time((action.key, 0, problem)):
            self._around.log.error("wish set aside", node=self._around.node, run=action.key, problem=problem)

    def _first_time(self, mark: tuple[str, int, str]) -> bool:
        if mark in self._refused:
            return False
        while len(self._refused) >= REFUSED_REMEMBERED_MAX:
            del self._refused[next(iter(self._refused))]
        self._refused[mark] = None
        return True

    async def _act(self, action: Action) -> None:
        item = self._desired.get(action.key)
        member = self.members.get(action.key)
        match action.act:
            case Act.START if item is not None:
                await self._accept(item)
            case Act.ANSWER if item is not None:
                await self._answer(item)
            case Act.REFUSE if item is not None:
                await self._refuse(item, action.reason)
            case Act.STOP | Act.RECLAIM if member is not None:
                await member.wish(self._wished(member, action, item))
            case Act.FORGET:
                await self._speaker.commit(forget=[action.key])
                self.members.pop(action.key, None)
            case _:
                pass

    def _wished(self, member: Member, action: Action, item: DesiredItem | None) -> AttemptDesired:
        """The wish as the decider wrote it, or the agent's own for what nobody desires any more."""
        if item is not None and item.desired is not None and item.desired.wish is not Wish.RUN:
            known = member.held.desired.specification
            return item.desired.model_copy(update={"specification": item.desired.specification or known})
        self._around.log.info("member stops", run=action.key, reason=action.reason)
        changes = {"wish": Wish.STOP, "stop_grace_ms": self._settings.stop_grace_ms, "cause": Cause.MOVED}
        return member.held.desired.model_copy(update=changes)

    async def _accept(self, item: DesiredItem) -> None:
        desired = item.desired
        if desired is None:
            return
        problem = self._unfit(desired.place.devices)
        if not problem:
            try:
                task_of(desired)
            except FieldRefused as error:
                problem = f"specification.{error.path}: {error.problem}"
        if problem:
            await self._decline(item, problem)
            return
        held = Held(
            desired=desired,
            causation=item.id,
            correlation=item.correlation_id,
            boot=self._around.machine.boot,
            accepted_ms=self._around.clock.monotonic_ms(),
        )
        receipt = self._speaker.receipt(AttemptAccepted, desired)
        await self._speaker.commit(Statement(receipt, item.id, item.correlation_id), rows=lambda: (held,))
        self._newest[held.slot] = max(desired.attempt, self._newest.get(held.slot, 0))
        self._live(held)

    def _unfit(self, shares: Sequence[DeviceShare]) -> str:
        """Why the devices can't be taken, or nothing."""
        states = list(self._around.machine.device_states())
        used = self._used_milli()
        for share in shares:
            state = states[share.index] if share.index < len(states) else DeviceState.OK
            if state is not DeviceState.OK:
                return f"device {share.index} is {state}"
            if used.get(share.index, 0) + share.milli > 1000:
                return f"device {share.index} has {1000 - used.get(share.index, 0)} of {share.milli} milli free"
        return ""

    async def _answer(self, item: DesiredItem) -> None:
        """Stopped or reclaimed before it was ever here: its place is free, and it never starts."""
        desired = item.desired
        if desired is None:
            return
        outcome = Outcome(ended_as="stopped", cause=desired.cause)
        stopped = [self._speaker.receipt(AttemptStopped, desired, outcome=outcome)] if desired.wish is Wish.STOP else []
        await self._close(item, desired, outcome, stopped)

    async def _decline(self, item: DesiredItem, reason: str) -> None:
        """It can't be held here: refused, its place free again, and it never starts later."""
        desired = item.desired
        if desired is None:
            return
        self._around.log.warning("member declined", run=item.key, reason=reason)
        outcome = Outcome(ended_as="failed", cause=Cause.START_FAILED, message=reason[:1000])
        refused = self._speaker.receipt(AttemptRefused, desired, reason=reason[:1000])
        await self._close(item, desired, outcome, [refused])

    async def _close(
        self, item: DesiredItem, desired: AttemptDesired, outcome: Outcome, before: Sequence[Receipt]
    ) -> None:
        held = Held(
            desired=desired, causation=item.id, correlation=item.correlation_id, phase=Phase.RECLAIMED,
            boot=self._around.machine.boot, outcome=outcome,
        )  # fmt: skip
        bodies = [*before, self._speaker.reclaimed(desired, outcome)]
        said = [Statement(body, item.id, item.correlation_id) for body in bodies]
        await self._speaker.commit(*said, rows=lambda: (held,))
        self._newest[held.slot] = max(desired.attempt, self._newest.get(held.slot, 0))
        self._live(held)

    async def _refuse(self, item: DesiredItem, reason: str) -> None:
        """Say once why a wish is not followed."""
        desired = item.desired
        mark = (item.key, desired.epoch if desired is not None else 0, reason)
        if desired is None or not self._first_time(mark):
            return
        receipt = self._speaker.receipt(AttemptRefused, desired, reason=reason[:1000])
        await self._speaker.commit(Statement(receipt, item.id, item.correlation_id))

    # --- members ------------------------------------------------------------------------------------------------------

    def _live(self, held: Held) -> None:
        task = Task(held.desired.tenant, held.desired.task) if held.phase is Phase.RECLAIMED else task_of(held.desired)
        member = Member(self._means, held, task)
        self.members[held.key] = member
        if held.phase is not Phase.RECLAIMED:
            self._spawn(f"member {held.key}", member.live())

    def _changed(self) -> None:
        self._wake.set()

    async def _revoked(self) -> None:
        """Nothing this node does counts any more: everything on it ends."""
        self._around.log.error("node revoked", node=self._around.node, held=len(self.members))
        for member in [*self.members.values()]:
            if member.held.phase is not Phase.RECLAIMED:
                await member.wish(member.held.desired.model_copy(update={"wish": Wish.RECLAIM}))
        living = [task for name, task in self._tasks.items() if name.startswith("member ")]
        if living:
            await asyncio.wait(living, timeout=REVOKED_TIMEOUT_S)

    # --- load ---------------------------------------------------------------------------------------------------------

    def _used_milli(self) -> dict[int, int]:
        used: dict[int, int] = {}
        for member in self.members.values():
            if member.held.phase is not Phase.RECLAIMED:
                for share in member.held.desired.place.devices:
                    used[share.index] = used.get(share.index, 0) + share.milli
        return used

    def _load(self, session: str) -> tuple[NodeHeartbeat, dict[str, Any] | None]:
        """The node's load as the agent knows it, with the machine's own readings over it."""
        machine = self._around.machine
        readings = machine.readings()
        held = [m.held for m in self.members.values() if m.held.phase is not Phase.RECLAIMED]
        at_ms = max(0, self._around.clock.now_ms())
        if readings is None:
            return NodeHeartbeat(node=self._around.node, session=session, at_ms=at_ms), None
        used = self._used_milli()
        states = list(machine.device_states())
        states += [DeviceState.OK] * (self._device_count - len(states))
        devices = [
            DeviceLoad(
                state=state, used_milli=min(1000, used.get(index, 0)), utilisation_milli=min(1000, used.get(index, 0))
            )
            for index, state in enumerate(states)
        ]
        body = NodeHeartbeat.of(
            devices,
            node=self._around.node,
            session=session,
            at_ms=at_ms,
            cpu_used_milli=sum(row.desired.place.cpu_milli for row in held),
            memory_used_bytes=sum(row.desired.place.memory_bytes for row in held),
            disk_used_bytes=sum(row.desired.place.disk_bytes for row in held),
            running_count=len(held),
        )
        return body, dict(readings) or None


def device_count(document: Document) -> int:
    """How many devices a node document names; 0 when it is wrong, which is inventory's to say."""
    try:
        return parse_node(document).device_count
    except FieldRefused:
        return 0


def task_of(desired: AttemptDesired) -> Task:
    """The task to run; a wish to end something may come without its specification."""
    if not desired.specification and desired.wish is not Wish.RUN:
        return Task(desired.tenant, desired.task)
    return parse_task(desired.specification, tenant=desired.tenant)
