"""The form of an ASGI application, for everybody who serves, wraps or calls one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

#: scope, receive, send.
Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
