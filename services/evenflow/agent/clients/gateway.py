"""The gateway's endpoints as the agent calls them, over any exchange."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import ValidationError

from evenflow.agent.clients.exchange import Exchange, HttpRequest, HttpResponse
from evenflow.agent.journal import Outgoing
from evenflow.agent.ports import (
    Acknowledgement,
    DesiredChange,
    DesiredItem,
    NodeRevoked,
    Refusal,
    Request,
    Session,
    SessionRefused,
)
from evenflow.core.errors import Refused, Unavailable
from evenflow.core.product import VERSION
from evenflow.events.contract import Document
from evenflow.events.contracts.placement import AttemptDesired
from evenflow.platform.security.identity import public_text
from evenflow.platform.security.signatures import session_tag, sign_receipt
from evenflow.platform.security.stamps import request_fields
from evenflow.platform.stores.ports import Absent
from evenflow.platform.stores.versions import VersionedObjects

POLL_SLACK_MS = 5_000


class HttpGateway:
    """A `GatewayClient`. It remembers the open session for the objects that go the same way."""

    def __init__(
        self, exchange: Exchange, *, node: str, key: Ed25519PrivateKey, token: str = "", timeout_ms: int = 10_000
    ) -> None:
        self._exchange = exchange
        self._node = node
        self._path = f"/v1/nodes/{quote(node, safe='')}"
        self._key = key
        self._token = token
        self._timeout_ms = timeout_ms
        self.open: Session | None = None

    async def open_session(self, document: Document, *, booted_ms: int) -> Session:
        """Show key and token; see the port."""
        body = json.dumps(
            {
                "node": self._node,
                "token": self._token,
                "document": document,
                "agent_version": VERSION,
                "public_key": public_text(self._key),
                "booted_ms": booted_ms,
            }
        ).encode()
        target = "/v1/sessions"
        signed_as = self._node if self._node.isascii() else ""
        fields = request_fields(node=signed_as, session="", method="POST", target=target)
        headers = {
            "content-type": "application/json",
            "x-evenflow-signature": sign_receipt(self._key, body, fields).hex(),
        }
        answer = await self._carry(HttpRequest("POST", target, headers, body), self._timeout_ms)
        if answer.status != 201:
            raise _error_of(answer, at_door=True)
        told = _object(answer.body)
        try:
            self.open = Session(str(told["session"]), bytes.fromhex(told["session_key"]), int(told["heartbeat_ms"]))
        except (KeyError, ValueError, TypeError) as error:
            raise Unavailable(f"the gateway's answer can't be read: {error!r}") from error
        return self.open

    async def desired(self, session: Session, *, instance: str, revision: int, wait_ms: int) -> DesiredChange:
        """Long poll; see the port."""
        target = f"{self._path}/desired?instance={quote(instance, safe='')}&revision={revision}&wait_ms={wait_ms}"
        answer = await self.call(session, "GET", target, timeout_ms=wait_ms + POLL_SLACK_MS)
        if answer.status != 200:
            raise _error_of(answer)
        told = _object(answer.body)
        try:
            return DesiredChange(
                instance=str(told["instance"]),
                revision=int(told["revision"]),
                full=bool(told["full"]),
                items=tuple(_item(item) for item in told["items"]),
                requests=tuple(Request(str(r["id"]), str(r["type"]), r["body"]) for r in told["requests"]),
            )
        except (KeyError, ValueError, TypeError, ValidationError) as error:
            raise Unavailable(f"the gateway's answer can't be read: {error!r}") from error

    async def send(self, session: Session, records: Sequence[Outgoing]) -> Acknowledgement:
        """Deliver a batch; see the port."""
        body = b'{"records":[%b]}' % b",".join(record.model_dump_json().encode() for record in records)
        answer = await self.call(session, "POST", f"{self._path}/records", body)
        told = _object(answer.body) if answer.status < 500 else {}
        if "accepted" not in told:
            raise _error_of(answer)
        refused = tuple(Refusal(int(one["sequence"]), str(one["reason"])) for one in told["refused"])
        return Acknowledgement(int(told["accepted"]), refused)

    async def call(
        self, session: Session, method: str, target: str, body: bytes = b"", *, timeout_ms: int = 0
    ) -> HttpResponse:
        """One tagged request within the session."""
        fields = request_fields(node=self._node, session=session.id, method=method, target=target)
        headers = {
            "x-evenflow-session": session.id,
            "x-evenflow-tag": session_tag(session.key, body, fields).hex(),
        }
        if body:
            headers["content-type"] = "application/json"
        return await self._carry(HttpRequest(method, target, headers, body), timeout_ms or self._timeout_ms)

    async def object_call(self, method: str, path: str, body: bytes = b"") -> HttpResponse:
        """One request about an object; Unavailable while no session is open."""
        if self.open is None:
            raise Unavailable("no session is open yet")
        answer = await self.call(self.open, method, f"{self._path}/objects{path}", body, timeout_ms=60_000)
        if answer.status >= 500 or answer.status in (401, 403):
            raise Unavailable(f"the gateway answers {answer.status}")
        return answer

    async def _carry(self, request: HttpRequest, timeout_ms: int) -> HttpResponse:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self._exchange(request, timeout_ms=timeout_ms)
        except TimeoutError as error:
            raise Unavailable(f"no answer within {timeout_ms} ms") from error


class GatewayObjects(VersionedObjects):
    """The object store as agents behind a gateway see it: checkpoints and logs of their own tasks."""

    def __init__(self, gateway: HttpGateway) -> None:
        self._gateway = gateway

    async def close(self) -> None:
        """Nothing of its own to close."""

    async def _write(self, path: str, data: bytes, *, create: bool) -> None:
        answer = await self._gateway.object_call("PUT", f"/{path}", data)
        if answer.status != 204:
            raise Refused(_message(answer))

    async def _read(self, path: str) -> bytes:
        answer = await self._gateway.object_call("GET", f"/{path}")
        if answer.status == 404:
            raise Absent(f"{path} is absent", path=path)
        if answer.status != 200:
            raise Refused(_message(answer))
        return answer.body

    async def _remove(self, path: str) -> None:
        await self._gateway.object_call("DELETE", f"/{path}")

    async def _sizes(self, prefix: str) -> dict[str, int]:
        answer = await self._gateway.object_call("GET", f"?prefix={quote(prefix, safe='')}")
        if answer.status == 404:
            return {}
        if answer.status != 200:
            raise Refused(_message(answer))
        return {str(path): 0 for path in _object(answer.body).get("paths", ())}


def _item(told: Mapping[str, Any]) -> DesiredItem:
    desired = None if told["desired"] is None else AttemptDesired.model_validate(told["desired"])
    return DesiredItem(str(told["key"]), desired, str(told["id"]), str(told["correlation_id"]))


def _object(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _message(answer: HttpResponse) -> str:
    told = _object(answer.body).get("error", {})
    return str(told.get("message", f"the gateway answers {answer.status}"))


def _error_of(answer: HttpResponse, *, at_door: bool = False) -> Exception:
    code = str(_object(answer.body).get("error", {}).get("code", ""))
    message = _message(answer)
    if answer.status >= 500 or answer.status in (408, 429):
        return Unavailable(message)
    if code == NodeRevoked.code:
        return NodeRevoked(message)
    if answer.status == 401 and not at_door:
        return SessionRefused(message)
    return Refused(message)
