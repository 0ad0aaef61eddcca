"""Before the start data comes to the node's site and the newest good checkpoint is found; at the end output leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from evenflow.agent.journal import Held
from evenflow.agent.ports import Surroundings, TransferBroken
from evenflow.agent.receipts import Speaker, Statement
from evenflow.agent.settings import AgentSettings
from evenflow.core.checkpointing.manifest import folder, problem_of, read_manifest
from evenflow.core.demand.task import Task
from evenflow.core.errors import EvenflowError, FieldRefused, Unavailable
from evenflow.core.lifecycle.causes import Cause
from evenflow.events.contracts.agent import TransferFailed, TransferFinished, TransferPlanned
from evenflow.events.contracts.checkpoint import ResumePoint

T = TypeVar("T")


class StagingFailed(EvenflowError):
    """What the member needs can't be brought here."""

    code = "staging-failed"

    def __init__(self, message: str, cause: Cause) -> None:
        super().__init__(message)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Staged:
    """What was brought: counted bytes, the checkpoint to resume from with its parts, the damaged ones on the way."""

    counted_bytes: int = 0
    resumed: ResumePoint | None = None
    parts: tuple[bytes, ...] = ()
    damaged: tuple[str, ...] = ()


class Staging:
    """Moves what members need."""

    def __init__(self, around: Surroundings, settings: AgentSettings, speaker: Speaker) -> None:
        self._around = around
        self._settings = settings
        self._speaker = speaker
        self.leaving = False

    async def bring(self, held: Held, task: Task) -> Staged:
        """Bring datasets and the newest good checkpoint. Raises StagingFailed; what was counted is said in any case."""
        desired = held.desired
        total = 0
        fetched = {wish.dataset for wish in desired.staging if wish.from_site != desired.place.site}
        for read in task.data:
            if read.dataset not in fetched and not await self._around.machine.holds(read.dataset):
                await self._missed(held, read.dataset)
        for wish in desired.staging:
            if wish.from_site != desired.place.site:
                reads = 1 if wish.keep_copy else wish.reads
                total += await self._transfer(
                    held, wish.dataset, from_site=wish.from_site, to_site=desired.place.site,
                    read_bytes=wish.bytes, reads=reads, keep_copy=wish.keep_copy, price_micro=wish.price_micro,
                )  # fmt: skip
        resumed, parts, damaged = await self.newest_good(held)
        if resumed is not None and resumed.site != desired.place.site and resumed.size_bytes:
            total += await self._transfer(
                held, f"checkpoint-g{resumed.generation}-c{resumed.checkpoint}", from_site=resumed.site,
                to_site=desired.place.site, read_bytes=resumed.size_bytes,
            )  # fmt: skip
        return Staged(total, resumed, parts, damaged)

    async def _missed(self, held: Held, dataset: str) -> None:
        """A copy that should be here is not: say so, that the catalogue forgets it, and give the attempt up."""
        desired, site = held.desired, held.desired.place.site
        body = TransferFailed(
            transfer=f"{held.key}/{dataset}", dataset=dataset, from_site=site, to_site=site, tenant=desired.tenant,
            task=desired.task, attempt=desired.attempt, member=desired.place.member, queue=desired.queue,
            node=self._around.node, bytes=0, reads=1, keep_copy=False, price_micro=0, counted_bytes=0, took_ms=0,
            problem=f"{dataset} is not at {site}", missing=True,
        )  # fmt: skip
        await self._speaker.commit(Statement(body, held.causation, held.correlation))
        raise StagingFailed(body.problem, Cause.LINK_LOST)

    async def send_output(self, held: Held, task: Task) -> int:
        """Send a finished member's output to where it must be; returns its bytes. Only member 0 writes output."""
        place, output = held.desired.place, task.output
        if output is None or not output.size_bytes or place.member:
            return 0
        if output.site is not None and output.site != place.site:
            await self._transfer(
                held, "output", from_site=place.site, to_site=output.site, read_bytes=output.size_bytes
            )
        return output.size_bytes

    async def newest_good(self, held: Held) -> tuple[ResumePoint | None, tuple[bytes, ...], tuple[str, ...]]:
        """The newest checkpoint that proves whole, its parts, and the manifests of those that did not."""
        damaged: list[str] = []
        desired = held.desired
        for point in desired.resume:
            try:
                parts = await self._parts(desired.tenant, desired.task, point)
            except Unavailable as error:
                raise StagingFailed(f"checkpoint {point.checkpoint} can't be read: {error}", Cause.LINK_LOST) from error
            if parts is not None:
                return point, parts, tuple(damaged)
            damaged.append(point.manifest)
        return None, (), tuple(damaged)

    async def _parts(self, tenant: str, task: str, point: ResumePoint) -> tuple[bytes, ...] | None:
        manifest_bytes = await self._read(point.manifest)
        if manifest_bytes is None:
            return None
        try:
            manifest = read_manifest(manifest_bytes)
        except FieldRefused:
            return None
        told = (manifest.tenant, manifest.task, manifest.generation, manifest.checkpoint, manifest.progress_ms)
        if told != (tenant, task, point.generation, point.checkpoint, point.progress_ms):
            return None
        parts: list[bytes] = []
        for part in manifest.parts:
            data = await self._read(folder(tenant, task, point.generation, point.checkpoint) + part.name)
            if data is None or problem_of(part, data):
                return None
            parts.append(data)
        return tuple(parts)

    async def _read(self, path: str) -> bytes | None:
        try:
            return await self.patiently(lambda: self._around.objects.get(path))
        except KeyError:
            return None

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """A store call, tried again with growing pauses while the store is away; the last Unavailable comes out."""
        return await self._tried(call, self._settings.store_attempts_max, lambda error: isinstance(error, Unavailable))

    async def _tried(
        self, call: Callable[[], Awaitable[T]], attempts_max: int, passes: Callable[[EvenflowError], bool]
    ) -> T:
        pause_ms = self._settings.backoff_ms
        for attempt in range(1, attempts_max + 1):
            try:
                return await call()
            except EvenflowError as error:
                if attempt == attempts_max or not passes(error):
                    raise
            await self._around.clock.sleep(pause_ms / 1000)
            pause_ms = min(self._settings.backoff_ms_max, pause_ms * 2)
        raise AssertionError  # the loop returns or raises

    async def _transfer(
        self,
        held: Held,
        what: str,
        *,
        from_site: str,
        to_site: str,
        read_bytes: int,
        reads: int = 1,
        keep_copy: bool = False,
        price_micro: int = 0,
    ) -> int:
        """One transfer, planned to finished or failed; a broken one is taken up again where it broke."""
        desired, around = held.desired, self._around
        size_bytes = read_bytes * reads
        counted = [0]
        fields: dict[str, Any] = {
            "transfer": f"{held.key}/{what}",
            "dataset": what,
            "from_site": from_site,
            "to_site": to_site,
            "tenant": desired.tenant,
            "task": desired.task,
            "attempt": desired.attempt,
            "member": desired.place.member,
            "queue": desired.queue,
            "node": around.node,
            "bytes": read_bytes,
            "reads": reads,
            "keep_copy": keep_copy,
            "price_micro": price_micro,
        }
        began_ms = around.clock.monotonic_ms()

        async def failed(problem: str, *, missing: bool = False) -> None:
            took_ms = max(0, around.clock.monotonic_ms() - began_ms)
            body = TransferFailed(
                **fields, counted_bytes=counted[0], took_ms=took_ms, problem=problem[:1000], missing=missing
            )
            await self._speaker.commit(Statement(body, held.causation, held.correlation))

        await self._speaker.commit(Statement(TransferPlanned(**fields), held.causation, held.correlation))
        try:
            await self._carry(what, from_site, to_site, size_bytes, counted)
        except TransferBroken as error:
            await failed(error.message, missing=error.missing)
            raise StagingFailed(f"{what} from {from_site}: {error.message}", Cause.LINK_LOST) from error
        except asyncio.CancelledError:
            if not self.leaving:  # an agent that only leaves takes the transfer up again
                await failed("the member was stopped")
            raise
        took_ms = max(0, around.clock.monotonic_ms() - began_ms)
        body = TransferFinished(**fields, counted_bytes=counted[0], took_ms=took_ms)
        await self._speaker.commit(Statement(body, held.causation, held.correlation))
        return counted[0]

    async def _carry(self, what: str, from_site: str, to_site: str, size_bytes: int, counted: list[int]) -> None:
        """Bring what is still missing; a broken transfer is taken up again where it broke."""

        def count(arrived: int) -> None:
            counted[0] = min(size_bytes, counted[0] + arrived)

        def passes(error: EvenflowError) -> bool:
            return isinstance(error, TransferBroken) and not error.missing

        await self._tried(
            lambda: self._around.machine.transfer(
                what, from_site=from_site, to_site=to_site, size_bytes=size_bytes - counted[0], counted=count
            ),
            self._settings.transfer_attempts_max,
            passes,
        )
