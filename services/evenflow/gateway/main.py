"""The gateway's composition root."""

from __future__ import annotations

from evenflow.events import streams
from evenflow.gateway.api import build_app
from evenflow.gateway.service import Gateway
from evenflow.gateway.settings import GatewaySettings
from evenflow.gateway.stores import session_secret
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.join_tokens import system_bytes
from evenflow.platform.service import EventService


def build(runtime: Runtime, settings: GatewaySettings) -> EventService:
    """Put the gateway together; the host serves its `app`."""
    host = EventService(runtime)
    gateway = Gateway(runtime, settings, host.outlet)
    host.follow([streams.DISPATCH, streams.NODE_REQUESTS, streams.NODES], gateway.desired.apply)

    async def restore() -> None:
        if not gateway.secret:
            gateway.secret = await session_secret(runtime.documents, system_bytes)

    host.restore = restore
    host.app = build_app(gateway, lambda: host.ready)
    return host
