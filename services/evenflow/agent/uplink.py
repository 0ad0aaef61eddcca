"""The agent's line to the gateway: session, heartbeats, the outbox's delivery, the long poll for desired state.

Everything is retried for ever with growing pauses. Heartbeats notice first that contact is back: then the others'
pauses end, and requests that still hang from before are given up and made anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

from pydantic_core import to_json

from evenflow.agent.journal import Outgoing
from evenflow.agent.ports import DesiredChange, NodeRevoked, Session, SessionRefused, Surroundings
from evenflow.agent.receipts import Speaker
from evenflow.agent.settings import AgentSettings
from evenflow.core.errors import Ended, Refused, Unavailable
from evenflow.events.contracts.agent import NodeHeartbeat

EXIT_REFUSED: Final = 78
EXIT_REVOKED: Final = 77
BEAT_RETRY_MS_MIN: Final = 200
#: A heartbeat may hang so many times what the last one took before another is tried, when contact was lost.
BEAT_PATIENCE: Final = 4

T = TypeVar("T")


class Load(Protocol):
    """What a heartbeat says of the node."""

    def __call__(self, session: str) -> tuple[NodeHeartbeat, dict[str, Any] | None]:
        """The body, and raw readings that replace fields of it."""


class Uplink:
    """One node's line. `revoked` is awaited once when the gateway says that the node was taken out."""

    def __init__(
        self, around: Surroundings, settings: AgentSettings, speaker: Speaker, *, load: Load,
        revoked: Callable[[], Awaitable[None]],
    ) -> None:  # fmt: skip
        self._around = around
        self._settings = settings
        self._speaker = speaker
        self._load = load
        self._revoked = revoked
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._in_contact = True
        self._beat_took_ms = 0
        self._regained = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._one_by_one = 0
        self.refused_count = 0

    def beat_now(self) -> None:
        """Something about the node changed that should not wait for the next heartbeat."""
        self._beat_now.set()

    @property
    def in_session(self) -> bool:
        """Whether a session is open and its gateway answers."""
        return self._session is not None and self._in_contact

    async def session(self) -> Session:
        """The open session, opening one when needed; raises Unavailable, or Ended when the gateway refuses the node."""
        async with self._opening:
            if self._session is None:
                around = self._around
                try:
                    session = await around.gateway.open_session(around.document, booted_ms=around.machine.booted_ms)
                except NodeRevoked as error:
                    await self._revoked()
                    raise Ended(f"node {around.node} was revoked", exit_code=EXIT_REVOKED) from error
                except Refused as error:
                    raise Ended(f"the gateway refuses this node: {error}", exit_code=EXIT_REFUSED) from error
                around.disk.remember_session(session.id)
                self._session = session
                around.log.info("session opened", node=around.node, session=session.id)
            return self._session

    async def beat(self) -> None:
        """Send heartbeats for ever, the first at a chance moment of the period."""
        around = self._around
        due_ms: int | None = None
        while True:
            session = await self._patiently(self.session)
            period_ms = self._settings.heartbeat_ms or session.heartbeat_ms
            if due_ms is None:
                due_ms = around.clock.monotonic_ms() + round(period_ms * around.random.random())
            await _set_within(self._beat_now, due_ms - around.clock.monotonic_ms())
            self._beat_now.clear()
            begun_ms = around.clock.monotonic_ms()
            delivered = await self._beat_once(period_ms)
            while due_ms <= begun_ms:  # the rhythm stays, whatever one beat took
                due_ms += period_ms
            if not delivered:
                retry_ms = max(BEAT_RETRY_MS_MIN, period_ms // 10)
                due_ms = min(due_ms, around.clock.monotonic_ms() + retry_ms)

    async def _beat_once(self, period_ms: int) -> bool:
        """Send one, bounded so that a hanging line costs no second heartbeat; whether it was delivered.

        Out of contact the next tries are shorter: contact that is back for a few seconds only must not be missed, and
        the less so as every other request waits for a heartbeat to find out.
        """
        limit_ms = min(self._settings.request_timeout_ms, max(500, period_ms // 2))
        if not self._in_contact:
            limit_ms = min(limit_ms, max(500, period_ms // 5, self._beat_took_ms * BEAT_PATIENCE))
        begun_ms = self._around.clock.monotonic_ms()
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._call(self._send_heartbeat)
            self._beat_took_ms = max(0, self._around.clock.monotonic_ms() - begun_ms)
        except (Unavailable, SessionRefused, Refused, TimeoutError) as error:
            self._in_contact = False
            self._around.log.debug("heartbeat not delivered", node=self._around.node, problem=str(error))
            return False
        return True

    async def _send_heartbeat(self, session: Session) -> None:
        body, raw = self._load(session.id)
        value = None if raw is None else to_json({**body.model_dump(mode="json"), **raw})
        await self._around.point("agent.before-publish")
        answer = await self._around.gateway.send(session, [self._speaker.heartbeat(session, body, value)])
        await self._around.point("agent.after-publish")
        for refusal in answer.refused:
            self._around.log.warning("heartbeat refused", node=self._around.node, problem=refusal.reason)

    async def deliver(self) -> None:
        """Empty the outbox for ever, in order, one batch at a time."""
        around, settings = self._around, self._settings
        while True:
            self._speaker.news.clear()
            if not around.disk.pending_count():
                await self._speaker.news.wait()
                if settings.receipt_gather_ms:
                    await around.clock.sleep(settings.receipt_gather_ms / 1000)
                continue
            await self._patiently(self.deliver_batch)
            if around.disk.pending_count() > settings.outbox_count_max:
                around.log.warning("outbox is long", node=around.node, waiting=around.disk.pending_count())

    async def deliver_batch(self) -> None:
        """Send the oldest records once; they leave the outbox only when the gateway has them on the log."""
        around, settings = self._around, self._settings
        count_max = 1 if self._one_by_one else settings.records_per_batch_max
        batch = around.disk.pending(count_max, settings.batch_bytes_max)
        if not batch:
            return

        async def send(session: Session) -> None:
            await around.point("agent.before-publish")
            answer = await around.gateway.send(session, batch)
            await around.point("agent.after-publish")
            for refusal in answer.refused:
                self.refused_count += 1
                around.log.error("record refused", node=around.node, sequence=refusal.sequence, problem=refusal.reason)
            around.disk.acknowledge(min(answer.accepted, batch[-1].sequence))
            await around.point("agent.after-acknowledge")

        try:
            await self._call(send)
            self._one_by_one = max(0, self._one_by_one - 1)
        except Refused as error:
            self._refused_whole(batch, error)

    def _refused_whole(self, batch: Sequence[Outgoing], error: Refused) -> None:
        """A batch refused as a whole is sent again record by record, so that only the bad one is lost."""
        if len(batch) == 1:
            self.refused_count += 1
            self._around.log.error(
                "record refused", node=self._around.node, sequence=batch[0].sequence, problem=str(error)
            )
            self._around.disk.acknowledge(batch[0].sequence)
        else:
            self._one_by_one = len(batch)

    async def desired(self, instance: str, revision: int) -> DesiredChange:
        """The next change of the desired set, however long it takes."""

        async def ask() -> DesiredChange:
            return await self._call(
                lambda session: self._around.gateway.desired(
                    session, instance=instance, revision=revision, wait_ms=self._settings.poll_wait_ms
                )
            )

        return await self._patiently(ask)

    async def _call(self, call: Callable[[Session], Awaitable[T]]) -> T:
        """One call within the session; the first that works again wakes whoever waits."""
        session = await self.session()
        try:
            answer = await call(session)
        except SessionRefused:
            if self._session is session:
                self._session = None
            raise
        except NodeRevoked as error:
            await self._revoked()
            raise Ended(f"node {self._around.node} was revoked", exit_code=EXIT_REVOKED) from error
        if not self._in_contact:
            self._in_contact = True
            regained, self._regained = self._regained, asyncio.Event()
            regained.set()
        return answer

    async def _patiently(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Again after a growing pause while the gateway does not answer or has forgotten the session."""
        settings, chance = self._settings, self._around.random
        pause_ms = settings.backoff_ms
        while True:
            regained = self._regained
            try:
                return await self._unless(call(), regained)
            except (Unavailable, SessionRefused) as error:
                self._around.log.debug("gateway away", node=self._around.node, problem=str(error))
            await _set_within(regained, round(pause_ms * (0.5 + chance.random() / 2)))
            pause_ms = min(settings.backoff_ms_max, pause_ms * 2)

    @staticmethod
    async def _unless(call: Coroutine[Any, Any, T], regained: asyncio.Event) -> T:
        """The call's answer; Unavailable when contact came back while it hung."""
        loop = asyncio.get_running_loop()
        calling, back = loop.create_task(call), loop.create_task(regained.wait())
        try:
            await asyncio.wait((calling, back), return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                return calling.result()
        finally:
            back.cancel()
            calling.cancel()
        raise Unavailable("contact is back: asked anew")


async def _set_within(event: asyncio.Event, wait_ms: int) -> None:
    """Return when the event is set, or after the wait."""
    if wait_ms <= 0:
        return
    try:
        async with asyncio.timeout(wait_ms / 1000):
            await event.wait()
    except TimeoutError:
        return
