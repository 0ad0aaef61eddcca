"""One-off wishes: probe a path, look at yourself, save progress now. Each is served once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pydantic import ValidationError

from evenflow.agent.members import Member
from evenflow.agent.ports import Request, Surroundings
from evenflow.agent.receipts import Speaker, Statement
from evenflow.core.errors import EvenflowError
from evenflow.events.contracts.agent import LinkSampled
from evenflow.events.contracts.inventory import NodeInspectRequested, NodeProbeRequested, TaskCheckpointRequested

SERVED_REMEMBERED_MAX: Final = 1_000
SERVING_MAX: Final = 16


class Requests:
    """Serves requests as they come; one that was served before is passed over."""

    def __init__(
        self, around: Surroundings, speaker: Speaker, members: Mapping[str, Member], beat_now: Callable[[], None]
    ) -> None:
        self._around = around
        self._speaker = speaker
        self._members = members
        self._beat_now = beat_now
        self._served: dict[str, None] = {}
        self._serving = 0
        self.unknown_count = 0

    def takes(self, request: Request) -> bool:
        """Whether it is new and there is room to serve it; it counts as served from now on."""
        if request.id in self._served or self._serving >= SERVING_MAX:
            return False
        while len(self._served) >= SERVED_REMEMBERED_MAX:
            del self._served[next(iter(self._served))]
        self._served[request.id] = None
        return True

    async def serve(self, request: Request) -> None:
        """Serve one; what can't be read or done is logged and passed over."""
        self._serving += 1
        try:
            match request.type:
                case NodeProbeRequested.TYPE:
                    await self._probe(NodeProbeRequested.model_validate(request.body), request.id)
                case NodeInspectRequested.TYPE:
                    self._beat_now()
                case TaskCheckpointRequested.TYPE:
                    await self._save(TaskCheckpointRequested.model_validate(request.body))
                case _:
                    self.unknown_count += 1
        except (ValidationError, EvenflowError, OSError) as error:
            self._around.log.warning("request not served", node=self._around.node, problem=str(error)[:500])
        finally:
            self._serving -= 1

    async def _probe(self, body: NodeProbeRequested, causation: str) -> None:
        around = self._around
        sample = await around.machine.probe(body.to_site, body.bytes)
        if sample is None:
            return
        stated = LinkSampled(
            from_site=str(around.document.get("site", "")),
            to_site=body.to_site,
            node=around.node,
            at_ms=max(0, around.clock.now_ms()),
            request=body.request,
            reachable=sample.reachable,
            round_trip_us=sample.round_trip_us,
            jitter_us=sample.jitter_us,
            loss_ppm=sample.loss_ppm,
            bandwidth_bits=sample.bandwidth_bits,
            sent_bytes=sample.sent_bytes,
        )
        await self._speaker.commit(Statement(stated, causation))

    async def _save(self, body: TaskCheckpointRequested) -> None:
        for member in list(self._members.values()):
            desired = member.held.desired
            if (desired.tenant, desired.task, desired.attempt) == (body.tenant, body.task, body.attempt):
                await member.save()
