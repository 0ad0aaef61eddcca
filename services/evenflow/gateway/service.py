"""The gateway's use-cases: open a session, serve desired state, take records, pass objects through.

Stateless: a session's key follows from the pool's secret, so a session opened at one gateway goes on at any other.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from evenflow.core.errors import FieldRefused, Refused, Unavailable
from evenflow.core.lifecycle.alerts import Alert
from evenflow.events import streams
from evenflow.events.contracts.agent import NodeAnnounced
from evenflow.events.contracts.platform import AlertCleared, AlertRaised
from evenflow.events.documents.fields import ID_GRAMMAR
from evenflow.events.envelope import AgentStamp, derived_id
from evenflow.gateway.admission import admit
from evenflow.gateway.bodies import RecordBody, SessionBody
from evenflow.gateway.desired import Change, DesiredSets
from evenflow.gateway.refusals import IdentityRefused, NotFound, Revoked, SessionUnknown
from evenflow.gateway.settings import GatewaySettings
from evenflow.gateway.stores import Identities
from evenflow.platform.broker.codec import Encoded, Fact
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.observability.signals import AGENT_RECORDS, SESSIONS
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.identity import fingerprint, public_key, public_text
from evenflow.platform.security.join_tokens import TokenRefused, redeem_token
from evenflow.platform.security.signatures import derive_session_key, verify_receipt, verify_tag
from evenflow.platform.security.stamps import request_fields

SESSIONS_TARGET = "/v1/sessions"
OBJECT_ROOTS = ("checkpoints", "logs")
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch: everything up to `accepted` is on the log or refused for good."""

    accepted: int
    refused: tuple[tuple[int, Refused], ...]


class Gateway:
    """One gateway process."""

    def __init__(self, runtime: Runtime, settings: GatewaySettings, outlet: Outlet) -> None:
        self.runtime = runtime
        self.settings = settings
        self._outlet = outlet
        self.desired = DesiredSets(settings, runtime.clock.now_ms)
        self._identities = Identities(runtime.documents, settings.sessions_remembered_max, self.desired.keys)
        self._session_keys: dict[tuple[str, str], bytes] = {}
        self._alerted: dict[str, None] = {}
        self._minute = self._stranger_count = 0
        self.secret = bytes.fromhex(settings.secret.get_secret_value())
        self.published_count = 0
        self.refused_count = 0

    # --- sessions -------------------------------------------------------------------------------------------------

    async def open_session(self, body: SessionBody, raw: bytes, signature: str) -> dict[str, Any]:
        """A session for a node that proved its key; what it announces goes to inventory, who judges the document."""
        await self._refuse_malformed_id(body)
        self._refuse_revoked(body.node)
        shown = public_key(body.public_key)
        fields = request_fields(node=body.node, session="", method="POST", target=SESSIONS_TARGET)
        try:
            await self._prove(body, shown, raw, signature, fields)
        except IdentityRefused as error:
            if await self._identities.of(body.node) is not None or self._has_room_for_strangers():
                await self.alert(body.node, error.message)
            raise
        session = self.runtime.ids.new_id()
        announced = self._announced(body, session)
        await self._outlet.publish(announced)
        self.published_count += 1
        self.runtime.metrics.of(SESSIONS).record(1)
        await self._calm(body.node)
        return {
            "session": session,
            "session_key": self.session_key(body.node, session).hex(),
            "heartbeat_ms": self.settings.heartbeat_ms,
            "poll_wait_ms_max": self.settings.poll_wait_ms_max,
        }

    async def _prove(self, body: SessionBody, shown: Ed25519PublicKey, raw: bytes, signature: str, fields: Any) -> None:
        if not signature:
            raise IdentityRefused("the request is not signed: x-evenflow-signature is missing")
        if not verify_receipt(shown, raw, fields, _hex(signature)):
            raise IdentityRefused("the request is not signed with the key that it shows")
        known = await self._identities.of(body.node)
        if known is None:
            await self._redeem(body, shown)
            known = await self._identities.join(body.node, body.public_key, at_ms=self.runtime.clock.now_ms())
        if public_text(known) != body.public_key:
            raise IdentityRefused(f"node {body.node!r} is known by another key, {fingerprint(known)}")

    async def _redeem(self, body: SessionBody, shown: Ed25519PublicKey) -> None:
        static = self.settings.token.get_secret_value()
        if static and hmac.compare_digest(static.encode(), body.token.encode("utf-8", "replace")):
            return
        # It is for one node: a machine that was revoked comes back under no other name with what it joined by.
        holder = f"{body.node}/{fingerprint(shown)}"
        try:
            await redeem_token(self.runtime.documents, body.token, now_ms=self.runtime.clock.now_ms(), holder=holder)
        except TokenRefused as error:
            raise IdentityRefused(error.message) from None

    async def _refuse_malformed_id(self, body: SessionBody) -> None:
        """An id outside the grammar can't be a key of anything; inventory still hears of it and says so."""
        if re.fullmatch(ID_GRAMMAR, body.node):
            return
        if body.node.isprintable() and self._has_room_for_strangers():
            await self._outlet.publish(self._announced(body, ""))
        raise FieldRefused("node", f"must match {ID_GRAMMAR}")

    def _has_room_for_strangers(self) -> bool:
        """Whether one more record may be written for somebody who has proved nothing: anybody can ask for more."""
        minute = self.runtime.clock.monotonic_ms() // MINUTE_MS
        records_max = self.settings.strangers_recorded_per_minute_max
        if minute != self._minute:
            self._minute, self._stranger_count = minute, 0
        self._stranger_count += 1
        if self._stranger_count == records_max + 1:
            self.runtime.log.warning(
                "more strangers ask for a session than are told one by one", minute_max=records_max
            )
        return self._stranger_count <= records_max

    def _announced(self, body: SessionBody, session: str) -> Fact:
        announced = NodeAnnounced(
            node=body.node,
            session=session,
            document=body.document,
            agent_version=body.agent_version,
            booted_ms=body.booted_ms,
            public_key=body.public_key if session else "",
        )
        stamp = AgentStamp(node=body.node, session=session, sequence=0) if session else None
        identity = derived_id("announced", body.node, session) if session else ""
        return Fact(streams.TELEMETRY, announced, id=identity, stamp=stamp)

    def session_key(self, node: str, session: str) -> bytes:
        """The key of a node's session."""
        key = self._session_keys.get((node, session))
        if key is None:
            while len(self._session_keys) >= self.settings.sessions_remembered_max:
                del self._session_keys[next(iter(self._session_keys))]
            key = self._session_keys[node, session] = derive_session_key(self.secret, node=node, session=session)
        return key

    def authenticate(self, *, node: str, session: str, tag: str, method: str, target: str, body: bytes) -> None:
        """Raises unless the holder of the node's session key sent exactly this request."""
        self._refuse_revoked(node)
        if not session or not tag:
            raise IdentityRefused("x-evenflow-session and x-evenflow-tag are required; open a session first")
        fields = request_fields(node=node, session=session, method=method, target=target)
        if not verify_tag(self.session_key(node, session), body, fields, _hex(tag)):
            raise SessionUnknown("the session is unknown or the request's tag is wrong; open a new session")

    def _refuse_revoked(self, node: str) -> None:
        if node in self.desired.revoked:
            raise Revoked(f"node {node} was revoked; give the machine a new id and token")

    # --- desired state ----------------------------------------------------------------------------------------------

    async def wait_for_change(self, node: str, *, instance: str, revision: int, wait_ms: int) -> Change:
        """What changed for the node, waiting for it if need be."""
        resume_from = revision if instance == self.runtime.instance else None
        change = self.desired.read(node, resume_from=resume_from)
        wait_ms = min(wait_ms, self.settings.poll_wait_ms_max)
        if change.empty and wait_ms:
            await self.desired.changed(node, wait_ms)
            self._refuse_revoked(node)
            change = self.desired.read(node, resume_from=resume_from)
        return change

    # --- records ----------------------------------------------------------------------------------------------------

    async def take(self, node: str, records: Sequence[RecordBody]) -> Taken:
        """Publish what is right, refuse what is wrong for good; returns when the log has confirmed."""
        public = await self._identities.of(node)
        if public is None:
            raise SessionUnknown(f"node {node!r} is not known here; open a session with its token")
        good: list[Encoded] = []
        refused: list[tuple[int, Refused]] = []
        for record in records:
            try:
                good.append(admit(record, node=node, public=public, session_key=lambda s: self.session_key(node, s)))
            except Refused as error:
                # Its traceback holds this very list, and with it the whole request until the collector looks.
                refused.append((record.sequence, error.with_traceback(None)))
        if good:
            await self._outlet.send(good)
        self.published_count += len(good)
        self.refused_count += len(refused)
        count = self.runtime.metrics.of(AGENT_RECORDS)
        if good:
            count.record(len(good), outcome="accepted")
        for _, why in refused:
            count.record(1, outcome=why.code)
        forged = [why.message for _, why in refused if isinstance(why, IdentityRefused)]
        if forged:
            await self.alert(node, forged[0])
        return Taken(max((record.sequence for record in records), default=0), tuple(refused))

    # --- alerts -------------------------------------------------------------------------------------------------------

    async def alert(self, node: str, message: str) -> None:
        """Say once that somebody is not who it says it is; a good session of the node ends that."""
        if node in self._alerted:
            return
        while len(self._alerted) >= self.settings.sessions_remembered_max:
            del self._alerted[next(iter(self._alerted))]
        self._alerted[node] = None
        at_ms = self.runtime.clock.now_ms()
        body = AlertRaised(name=Alert.NODE_IDENTITY, subject=node[:256], message=message[:1000], at_ms=at_ms)
        await self._tell(Fact(streams.ALERTS, body))

    async def _calm(self, node: str) -> None:
        if node in self._alerted:
            del self._alerted[node]
            body = AlertCleared(name=Alert.NODE_IDENTITY, subject=node, at_ms=self.runtime.clock.now_ms())
            await self._tell(Fact(streams.ALERTS, body))

    async def _tell(self, fact: Fact) -> None:
        try:
            await self._outlet.publish(fact)
        except Unavailable as error:
            self.runtime.log.warning("alert not published", problem=error.message)

    # --- objects ------------------------------------------------------------------------------------------------------

    def object_path(self, node: str, path: str) -> str:
        """A path that the node may touch: checkpoints and logs of tasks that are placed on it."""
        steps = path.split("/")
        if len(steps) < 3 or steps[0] not in OBJECT_ROOTS or ".." in steps:
            raise NotFound(f"nodes reach {' and '.join(OBJECT_ROOTS)} of their tasks only")
        if not self.desired.holds(node, f"{steps[1]}/{steps[2]}"):
            raise NotFound(f"no attempt of {steps[1]}/{steps[2]} is placed on node {node}")
        return path


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
