"""The agents' door over HTTP: plain Starlette routes, JSON both ways, every refusal with its code and reason.

    POST /v1/sessions                            join or come back; signed with the node's key
    GET  /v1/nodes/{node}/desired                ?instance=&revision=&wait_ms=   long poll
    POST /v1/nodes/{node}/records                receipts, telemetry, probes, transfers
    GET, PUT, DELETE /v1/nodes/{node}/objects/…  checkpoints and logs of tasks placed there; GET …/objects?prefix=
    GET  /healthz  /readyz

All but the first carry x-evenflow-session and x-evenflow-tag (session's tag over method, target and body).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from evenflow.core.errors import EvenflowError, FieldRefused, Refused, Unavailable
from evenflow.gateway.bodies import RecordsBody, SessionBody, read_json
from evenflow.gateway.desired import Change
from evenflow.gateway.refusals import IdentityRefused, NotFound, Revoked, SessionUnknown, TooLarge
from evenflow.gateway.service import SESSIONS_TARGET, Gateway
from evenflow.platform.stores.ports import Absent

Handler = Callable[[Request], Awaitable[Response]]

_STATUS: tuple[tuple[type[EvenflowError], int], ...] = (
    (SessionUnknown, 401),
    (IdentityRefused, 401),
    (Revoked, 403),
    (NotFound, 404),
    (Absent, 404),
    (TooLarge, 413),
    (Unavailable, 503),
    (Refused, 400),
)


def build_app(gateway: Gateway, ready: Callable[[], bool]) -> Starlette:
    """The ASGI application of one gateway."""
    doors = Doors(gateway, ready)

    async def healthz(_: Request) -> Response:
        return _json({"ok": True})

    async def readyz(_: Request) -> Response:
        return _json({"ready": ready()}, 200 if ready() else 503)

    node = "/v1/nodes/{node}"
    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route(SESSIONS_TARGET, doors.guarded(doors.open_session), methods=["POST"]),
            Route(f"{node}/desired", doors.guarded(doors.desired), methods=["GET"]),
            Route(f"{node}/records", doors.guarded(doors.records), methods=["POST"]),
            Route(f"{node}/objects", doors.guarded(doors.object_paths), methods=["GET"]),
            Route(f"{node}/objects/{{path:path}}", doors.guarded(doors.objects), methods=["GET", "PUT", "DELETE"]),
        ],
        exception_handlers={HTTPException: _no_such_route},
    )


async def _no_such_route(_: Request, error: Exception) -> Response:
    """An address or a method that the gateway does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = {404: "not-found", 405: "method-refused"}.get(status, "refused")
    message = str(error.detail) if isinstance(error, HTTPException) else "failed"
    return _json({"error": {"code": code, "message": message, "path": ""}}, status)


class Doors:
    """The endpoints."""

    def __init__(self, gateway: Gateway, ready: Callable[[], bool]) -> None:
        self._gateway = gateway
        self._ready = ready

    def guarded(self, handler: Handler) -> Handler:
        """Turn the product's errors into answers; nothing else gets out."""

        async def handle(request: Request) -> Response:
            try:
                if not self._ready():
                    raise Unavailable("the gateway is still reading the log; try again")
                size = sum(len(name) + len(value) for name, value in request.headers.raw)
                if size > self._gateway.settings.header_bytes_max:
                    raise TooLarge(f"headers of {size} bytes, at most {self._gateway.settings.header_bytes_max}")
                return await handler(request)
            except EvenflowError as error:
                return _refusal(error)

        return handle

    async def open_session(self, request: Request) -> Response:
        """POST /v1/sessions."""
        raw = await self._body(request, self._gateway.settings.body_bytes_max)
        body = read_json(SessionBody, raw)
        signature = request.headers.get("x-evenflow-signature", "")
        return _json(await self._gateway.open_session(body, raw, signature), 201)

    async def desired(self, request: Request) -> Response:
        """GET …/desired."""
        node = await self._authenticated(request, b"")
        query = request.query_params
        change = await self._gateway.wait_for_change(
            node,
            instance=query.get("instance", ""),
            revision=_number(query.get("revision", "0"), "revision"),
            wait_ms=_number(query.get("wait_ms", "0"), "wait_ms"),
        )
        return Response(_desired_json(self._gateway.runtime.instance, change), media_type="application/json")

    async def records(self, request: Request) -> Response:
        """POST …/records. When every record is refused the status says so, else 200 lists the refused ones."""
        settings = self._gateway.settings
        raw = await self._body(request, settings.body_bytes_max)
        node = await self._authenticated(request, raw)
        body = read_json(RecordsBody, raw)
        if len(body.records) > settings.records_per_batch_max:
            raise FieldRefused("records", f"has {len(body.records)} entries, at most {settings.records_per_batch_max}")
        taken = await self._gateway.take(node, body.records)
        refused = [_refused(sequence, error) for sequence, error in taken.refused]
        answer = {"accepted": taken.accepted, "refused": refused}
        if taken.refused and len(taken.refused) == len(body.records):
            first = taken.refused[0][1]
            return _json({**answer, **_error(first)}, _status_of(first))
        return _json(answer)

    async def object_paths(self, request: Request) -> Response:
        """GET …/objects?prefix=."""
        node = await self._authenticated(request, b"")
        prefix = request.query_params.get("prefix", "")
        self._gateway.object_path(node, prefix)
        return _json({"paths": await self._gateway.runtime.objects.paths(prefix)})

    async def objects(self, request: Request) -> Response:
        """GET, PUT, DELETE …/objects/{path}."""
        raw = await self._body(request, self._gateway.settings.object_bytes_max)
        node = await self._authenticated(request, raw)
        path = self._gateway.object_path(node, request.path_params["path"])
        store = self._gateway.runtime.objects
        if request.method == "PUT":
            await store.put(path, raw)
            return Response(status_code=204)
        if request.method == "DELETE":
            await store.delete(path)
            return Response(status_code=204)
        return Response(await store.get(path), media_type="application/octet-stream")

    async def _authenticated(self, request: Request, body: bytes) -> str:
        node = str(request.path_params["node"])
        query = f"?{request.url.query}" if request.url.query else ""
        raw_path = request.scope.get("raw_path") or request.url.path.encode()
        try:
            self._gateway.authenticate(
                node=node,
                session=request.headers.get("x-evenflow-session", ""),
                tag=request.headers.get("x-evenflow-tag", ""),
                method=request.method,
                target=raw_path.decode("latin-1") + query,
                body=body,
            )
        except IdentityRefused as error:
            await self._gateway.alert(node, error.message)
            raise
        return node

    @staticmethod
    async def _body(request: Request, bytes_max: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > bytes_max:
                    raise TooLarge(f"the body is larger than {bytes_max} bytes")
                parts.append(part)
        except ClientDisconnect:
            raise FieldRefused("body", "the caller left before it was whole") from None
        return b"".join(parts)


def _desired_json(instance: str, change: Change) -> bytes:
    """The answer's JSON, made around the records' own bytes."""
    items = b",".join(
        b'{"key":%b,"id":%b,"correlation_id":%b,"desired":%b}'
        % (_text(key), _text(row.id), _text(row.correlation_id), row.value or b"null")
        for key, row in change.rows
    )
    asked = b",".join(
        b'{"id":%b,"type":%b,"body":%b}' % (_text(one.id), _text(one.type), one.value) for one in change.asked
    )
    full = b"true" if change.full else b"false"
    return b'{"instance":%b,"revision":%d,"full":%b,"items":[%b],"requests":[%b]}' % (
        _text(instance), change.revision, full, items, asked,
    )  # fmt: skip


def _text(value: str) -> bytes:
    return json.dumps(value).encode()


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(body, separators=(",", ":")), status_code=status, media_type="application/json")


def _status_of(error: EvenflowError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _error(error: EvenflowError) -> dict[str, Any]:
    path = error.path if isinstance(error, FieldRefused) else ""
    return {"error": {"code": error.code, "message": error.message, "path": path}}


def _refusal(error: EvenflowError) -> Response:
    return _json(_error(error), _status_of(error))


def _refused(sequence: int, error: Refused) -> dict[str, Any]:
    return {"sequence": sequence, "reason": error.message, "code": error.code}


def _number(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise FieldRefused(name, "must be a non-negative integer")
    return int(text)
