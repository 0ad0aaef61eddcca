"""The outermost layer: who calls and from where, headers of every answer, counts, and errors that nobody foresaw.

The API listens on loopback, where any page in a browser can reach it. So a foreign `Host` is refused (a name made to
point at loopback), and a change asked for by another site's page is refused too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic_core import to_json

from evenflow.console.access.admission import HINT, Admission
from evenflow.console.access.caller import SCOPE, UNKNOWN, Caller
from evenflow.console.access.recording import Recording
from evenflow.console.problems import Problem, problem_of
from evenflow.platform.asgi import Asgi

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
#: What anybody may ask: whether it lives and serves.
OPEN: Final = ("/health", "/ready")
RETRY_AFTER_S: Final = {429: b"60", 503: b"1"}
ENDED: Final = Problem(401, "token-refused", "the token ended before the answer did", way_out=HINT)
_READS: Final = ("GET", "HEAD", "OPTIONS")
_HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)

Message = dict[str, Any]


class Ended(Exception):
    """The right to an answer ended before the answer did. None of the product's errors: no handler may answer it."""


class Guard:
    """Wraps the API's application."""

    def __init__(
        self, app: Asgi, *, admission: Admission, recording: Recording, hosts: Iterable[str], log: Any
    ) -> None:
        self.app = app
        self.recording = recording
        self._admission = admission
        self._hosts = (*LOOPBACK, *hosts)
        self._log = log
        self.answers: Counter[tuple[str, int]] = Counter()

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        method = str(scope.get("method", "GET"))
        started = False
        answered = 500
        caller = scope[SCOPE] = Caller(UNKNOWN, None, address=_address(scope))

        async def tell(message: Message) -> None:
            nonlocal started, answered
            if message["type"] == "http.response.start":
                started = True
                answered = int(message["status"])
                self.answers[method if method in _METHODS else "other", answered] += 1
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        async def answer(message: Message) -> None:
            # What was asked for may be told for hours, or waited for: each part of it needs the right anew.
            if method in _READS and not caller.lets_in():
                raise Ended
            await tell(message)

        try:
            self._admit(method, scope)
            if scope["path"] not in OPEN:
                caller = scope[SCOPE] = self._admission.caller(scope)
            await self.app(scope, receive, answer)
        except Ended:
            if started:
                await send({"type": "http.response.body", "body": b""})
            else:
                await refuse(ENDED, tell)
        except Exception as error:
            problem = problem_of(error)
            if problem.status == 500:
                self._log.error("request failed", method=method, problem=f"{type(error).__name__}: {error}"[:500])
            if started:
                raise
            caller.refusal = problem
            await refuse(problem, tell)
        finally:
            if method not in _READS:
                await self.recording.ended(scope, caller, answered)

    def _admit(self, method: str, scope: Message) -> None:
        headers = dict(scope.get("headers", []))
        host = _hostname(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._hosts:
            raise Problem(
                403,
                "host-refused",
                f"the API is not called {host[:80]!a}",
                way_out="Use localhost, or add the name to the console's setting trusted_hosts.",
            )
        if method in _READS:
            return
        origin = headers.get(b"origin", b"").decode("latin-1")
        foreign = bool(origin) and (urlsplit(origin).hostname or "") not in self._hosts
        if foreign or headers.get(b"sec-fetch-site", b"") in (b"cross-site", b"same-site"):
            raise Problem(
                403,
                "origin-refused",
                "another site's page may not change anything here",
                way_out="Use the command line.",
            )


def _address(scope: Message) -> str:
    client = scope.get("client")
    return str(client[0]) if client else ""


_METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


def _hostname(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


async def refuse(problem: Problem, send: Callable[[Any], Awaitable[None]]) -> None:
    """Write an error as a whole answer."""
    body = to_json(problem.row()) + b"\n"
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if problem.status in RETRY_AFTER_S:
        headers.append((b"retry-after", RETRY_AFTER_S[problem.status]))
    if problem.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
