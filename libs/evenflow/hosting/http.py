"""Serving a service's ASGI application over HTTP, on the loop that everything else runs on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Generator
from typing import Any, Final

import uvicorn
from pydantic_core import to_json

from evenflow.core.errors import Refused
from evenflow.platform.asgi import Asgi

GRACE_S: Final = 2
CONCURRENCY_MAX: Final = 2_000
HEADER_BYTES_MAX: Final = 65_536
CUT_S: Final = 1.0


class Current:
    """Whatever incarnation of a service runs just now, as one application; 503 while there is none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._service: Any = None

    def set(self, service: object) -> None:
        """A new incarnation."""
        self._service = service

    @property
    def app(self) -> Asgi | None:
        """Its application once it serves."""
        service = self._service
        if service is None or not getattr(service, "ready", False):
            return None
        app: Asgi | None = service.app
        return app

    async def __call__(self, scope: dict[str, Any], receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
        """One request."""
        app = self.app
        if app is not None:
            await app(scope, receive, send)
        elif scope["type"] == "http":
            body = to_json(
                {
                    "code": "starting",
                    "path": "",
                    "problem": f"{self._name} is not ready",
                    "way_out": "Try again in a moment.",
                }
            )
            headers = [(b"content-type", b"application/json"), (b"retry-after", b"1")]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": body})


class _Server(uvicorn.Server):
    """uvicorn's server without its hold on signals, since the process has one place for them; says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets=sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave them alone."""
        yield


class HttpServer:
    """One listening address; a service of the process like any other. With a certificate it speaks HTTPS alone."""

    def __init__(self, app: Asgi, *, name: str, address: str, port: int, certificate: str = "", key: str = "") -> None:
        self.name = name
        self._app = app
        self._address = address
        self._port = port
        self._certificate = certificate
        self._key = key
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None

    @property
    def port(self) -> int:
        """The port in use, also when 0 was asked for."""
        if self._socket is None:
            return self._port
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """Where it answers."""
        address = f"[{self._address}]" if ":" in self._address else self._address
        return f"{'https' if self._certificate else 'http'}://{address}:{self.port}"

    def bind(self) -> None:
        """Take the address; bound twice it is taken once. Raises Refused when it is taken already."""
        if self._socket is not None:
            return
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        # The protocol is named, because asyncio turns off the delay of small packets only where it is.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((self._address, self._port))
        except OSError as error:
            listening.close()
            raise Refused(
                f"{self.name} can't listen on {self._address}:{self._port}: {error.strerror}; choose another port"
            ) from error
        listening.set_inheritable(False)
        self._socket = listening

    async def start(self) -> None:
        """Listen. Raises Refused when the address is taken."""
        self.bind()
        for logger in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
            logging.getLogger(logger).setLevel(logging.CRITICAL)  # errors are answered and logged by the applications
        config = uvicorn.Config(
            self._app,
            lifespan="off",
            ws="none",
            access_log=False,
            log_config=None,
            limit_concurrency=CONCURRENCY_MAX,
            timeout_graceful_shutdown=GRACE_S,
            h11_max_incomplete_event_size=HEADER_BYTES_MAX,
            server_header=False,
            ssl_certfile=self._certificate or None,
            ssl_keyfile=self._key or None,
        )
        self._server = _Server(config)
        assert self._socket is not None  # noqa: S101  bound just above
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name=f"http {self.name}")
        listening = asyncio.create_task(self._server.listening.wait())
        await asyncio.wait([self._task, listening], return_when=asyncio.FIRST_COMPLETED)
        listening.cancel()
        if self._task.done():
            self._task.result()

    async def wait(self) -> None:
        """Return when it stopped."""
        if self._task is not None:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Answer what is under way within a bound and close."""
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            done, _ = await asyncio.wait([self._task], timeout=GRACE_S + CUT_S)
            if not done:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
            self._socket = None
