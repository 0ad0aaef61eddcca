"""The API from Python: `Client` where calls may block, `AsyncClient` where a loop runs.

    with Client("http://127.0.0.1:7070") as evenflow:
        task = evenflow.submit({"run": {"work_s": 60}}, wait_ms=5000)
        print(evenflow.status(task.task).state)

Every call raises `Answered` with the API's own words, or `Unreachable`. Both take any transport of httpx, so the
asynchronous one can call an application of its own process. `token` is an access token, `ca` a file of certificates to
trust instead of the usual ones.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from urllib.parse import quote

import httpx

from evenflow.client import calls, results
from evenflow.client.calls import Call, Json
from evenflow.client.errors import Answered, Unreachable
from evenflow.core.errors import FieldRefused
from evenflow.platform.security.channels import authorities, may_carry_secrets

T = TypeVar("T")
URL: Final = "http://127.0.0.1:7070"
_SPENT: Final = httpx.ByteStream(b"")
TIMEOUT_S: Final = 10.0


def specification_bytes(specification: Mapping[str, Any] | bytes | str) -> bytes:
    """A document as it is sent: text and bytes as they are."""
    if isinstance(specification, bytes):
        return specification
    if isinstance(specification, str):
        return specification.encode()
    return json.dumps(specification).encode()


@dataclass(frozen=True, slots=True)
class Given:
    """Who calls: a name of its own choice where no token is wanted, else the token; `ca` is a file of certificates."""

    who: str = ""
    token: str = ""
    ca: str = ""


def _request(call: Call[Any], timeout_s: float) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "method": call.method,
        "url": call.path,
        "params": dict(call.params),
        "timeout": timeout_s + call.wait_ms / 1000,
    }
    if call.reason:
        sent["headers"] = {"x-evenflow-reason": quote(call.reason)}
    if call.content is not None:
        sent["content"] = call.content
    elif call.json is not None:
        sent["json"] = call.json
    return sent


def _read(call: Call[T], answer: httpx.Response) -> T:
    answer.stream = _SPENT  # read to its end; httpx's own holds the answer, and with its body waits for the collector
    try:
        body = answer.json()
    except ValueError:
        body = {}
    if answer.status_code >= 400:
        raise Answered(answer.status_code, body if isinstance(body, dict) else {})
    try:
        return call.read(body)
    except (ValueError, KeyError, TypeError) as error:
        message = f"{answer.url} does not answer as Evenflow's API does: {type(error).__name__}"
        raise Unreachable(message) from error


def _settings(url: str, given: Given, timeout_s: float, transport: Any) -> dict[str, Any]:
    headers = {"x-evenflow-who": given.who} if given.who else {}
    if given.token:
        if not may_carry_secrets(url):
            raise FieldRefused("url", f"{url[:200]} is plain HTTP beyond this machine; tokens go over https://")
        headers["authorization"] = f"Bearer {given.token}"
    settings = {"base_url": url, "headers": headers, "timeout": timeout_s, "transport": transport, "trust_env": False}
    if given.ca:
        settings["verify"] = authorities(given.ca)
    return settings


def _unreachable(url: object, error: Exception) -> Unreachable:
    return Unreachable(f"no answer from {url}: {type(error).__name__}: {error}"[:300])


class Client:
    """Blocking calls."""

    def __init__(
        self,
        url: str = URL,
        *,
        who: str = "",
        token: str = "",
        ca: str = "",
        timeout_s: float = TIMEOUT_S,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.Client(**_settings(url, Given(who, token, ca), timeout_s, transport))

    def __enter__(self) -> Self:
        """The client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """One call."""
        try:
            answer = self._http.request(**_request(call, self._timeout_s))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self._http.base_url, error) from error
        return _read(call, answer)

    def submit(self, specification: Mapping[str, Any] | bytes | str, *, wait_ms: int = 0) -> results.Submitted:
        """Submit a task; with `wait_ms` wait for placement's decision."""
        return self.send(calls.submit(specification_bytes(specification), wait_ms))

    def tasks(self, **wanted: Any) -> results.Page[results.TaskRow]:
        """A page of tasks: state, queue, site, prefix, tenant, limit, after."""
        return self.send(calls.tasks(**wanted))

    def status(self, task: str, *, tenant: str = "default") -> results.TaskStatus:
        """Everything about a task."""
        return self.send(calls.status(task, tenant))

    def why(self, task: str, *, tenant: str = "default") -> Json:
        """Why a task is where it is."""
        return self.send(calls.of_task(task, "why", tenant))

    def course(self, task: str, *, tenant: str = "default") -> Json:
        """Every event of a task in order."""
        return self.send(calls.of_task(task, "events", tenant))

    def cancel(self, task: str, *, tenant: str = "default", reason: str = "") -> Json:
        """Ask for a task's cancellation."""
        return self.send(calls.cancel(task, tenant, reason))

    def nodes(self, **wanted: Any) -> results.Page[results.NodeRow]:
        """A page of nodes: site, reach, prefix, limit, after."""
        return self.send(calls.nodes(**wanted))

    def queues(self) -> list[results.QueueRow]:
        """All queues."""
        return self.send(calls.queues())

    def ledger(self, **wanted: Any) -> results.Ledger:
        """Ledger lines and sums: queue, task, tenant, limit."""
        return self.send(calls.ledger(**wanted))

    def events(self, *, wait_ms: int = 0, **wanted: Any) -> results.Events:
        """A piece of the tail of events: topic, type, task, node, queue, after, limit."""
        return self.send(calls.events(wait_ms, **wanted))

    def follow(self, *, wait_ms: int = 20_000, **wanted: Any) -> Iterator[Json]:
        """Events as they come, for ever; starts with the newest `limit`."""
        after = str(wanted.pop("after", ""))
        while True:
            found = self.events(wait_ms=wait_ms, **{**wanted, "after": after})
            yield from found.items
            after = found.next

    def output(self, task: str, **wanted: Any) -> Iterator[bytes]:
        """What a task prints: attempt, member, tenant, follow, offset."""
        params = calls.given(**wanted)
        try:
            with self._http.stream("GET", calls.task_path(task, "/logs"), params=params, timeout=None) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    _read(calls.condition("logs"), answer)
                yield from answer.iter_raw()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self._http.base_url, error) from error


class AsyncClient:
    """The same calls on a loop."""

    def __init__(
        self,
        url: str = URL,
        *,
        who: str = "",
        token: str = "",
        ca: str = "",
        timeout_s: float = TIMEOUT_S,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._http = httpx.AsyncClient(**_settings(url, Given(who, token, ca), timeout_s, transport))

    async def __aenter__(self) -> Self:
        """The client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close its connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """One call."""
        try:
            answer = await self._http.request(**_request(call, self._timeout_s))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _unreachable(self._http.base_url, error) from error
        return _read(call, answer)

    async def submit(self, specification: Mapping[str, Any] | bytes | str, *, wait_ms: int = 0) -> results.Submitted:
        """Submit a task; with `wait_ms` wait for placement's decision."""
        return await self.send(calls.submit(specification_bytes(specification), wait_ms))

    async def tasks(self, **wanted: Any) -> results.Page[results.TaskRow]:
        """A page of tasks."""
        return await self.send(calls.tasks(**wanted))

    async def status(self, task: str, *, tenant: str = "default") -> results.TaskStatus:
        """Everything about a task."""
        return await self.send(calls.status(task, tenant))

    async def why(self, task: str, *, tenant: str = "default") -> Json:
        """Why a task is where it is."""
        return await self.send(calls.of_task(task, "why", tenant))

    async def cancel(self, task: str, *, tenant: str = "default", reason: str = "") -> Json:
        """Ask for a task's cancellation."""
        return await self.send(calls.cancel(task, tenant, reason))

    async def nodes(self, **wanted: Any) -> results.Page[results.NodeRow]:
        """A page of nodes."""
        return await self.send(calls.nodes(**wanted))

    async def queues(self) -> list[results.QueueRow]:
        """All queues."""
        return await self.send(calls.queues())

    async def ledger(self, **wanted: Any) -> results.Ledger:
        """Ledger lines and sums."""
        return await self.send(calls.ledger(**wanted))

    async def events(self, *, wait_ms: int = 0, **wanted: Any) -> results.Events:
        """A piece of the tail of events."""
        return await self.send(calls.events(wait_ms, **wanted))

    async def follow(self, *, wait_ms: int = 20_000, **wanted: Any) -> AsyncIterator[Json]:
        """Events as they come, for ever; starts with the newest `limit`."""
        after = str(wanted.pop("after", ""))
        while True:
            found = await self.events(wait_ms=wait_ms, **{**wanted, "after": after})
            for event in found.items:
                yield event
            after = found.next
