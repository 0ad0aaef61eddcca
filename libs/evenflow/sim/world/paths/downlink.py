"""The verb `deliver` between the gateway and an agent: rules about desired state and node requests.

On the log these records are the services' own memory; what a bad path loses, doubles or delays is the copy on its way
to the node. So the rules act on the answers to an agent's long poll.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events import streams
from evenflow.sim.stage import DeliveryRule

TOPICS: Final = (streams.DISPATCH.name, streams.NODE_REQUESTS.name)
#: Where an answer lists what came over each topic.
_LISTS: Final = {"items": streams.DISPATCH.name, "requests": streams.NODE_REQUESTS.name}
Later = Callable[[int, Callable[[], None]], None]


@dataclass(slots=True)
class _Active:
    rule: DeliveryRule
    left: int | None
    kept: list[tuple[str, str, Any]] = field(default_factory=list)


class Downlink:
    """Filters answers to long polls, and pushes what was kept back when its time has come."""

    def __init__(self, now_ms: Callable[[], int], later: Later) -> None:
        self._now_ms = now_ms
        self._later = later
        self._active: list[_Active] = []
        self._released: dict[str, list[tuple[str, Any]]] = {}
        self._polls: dict[str, tuple[asyncio.Future[HttpResponse], HttpRequest]] = {}

    def add(self, rule: DeliveryRule) -> None:
        """Start a rule; it ends by count, by time or by `end_all`."""
        active = _Active(rule, rule.times)
        self._active.append(active)
        if rule.ends_ms is not None:
            self._later(rule.ends_ms - self._now_ms(), lambda: self._end(active))

    def end_all(self) -> None:
        """End every rule and release what is kept back."""
        for active in list(self._active):
            self._end(active)

    def asked(self, node: str, request: HttpRequest, future: asyncio.Future[HttpResponse]) -> None:
        """An agent waits for an answer."""
        if _is_poll(request):
            self._polls[node] = (future, request)
            self._push(node)

    def answered(self, node: str, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        """The answer as it arrives."""
        if not _is_poll(request) or response.status != 200 or not (self._active or node in self._released):
            return response
        if self._polls.get(node, (None, None))[1] is request:
            del self._polls[node]  # this answer takes along what is released while it is made
        told = json.loads(response.body)
        for name in _LISTS:
            passed: list[Any] = []
            for entry in told.get(name, ()):
                passed += self._treat(node, name, entry)
            told[name] = passed
        for name, entry in self._released.pop(node, []):
            told[name].append(entry)
        return HttpResponse(response.status, json.dumps(told).encode())

    def _treat(self, node: str, name: str, entry: Any) -> list[Any]:
        for active in self._active:
            if active.left == 0 or not _matches(active.rule, node, name, entry):
                continue
            if active.left is not None:
                active.left -= 1
            rule = active.rule
            if rule.action == "drop":
                return []
            if rule.action == "duplicate":
                if not rule.after_ms:
                    return [entry] * (1 + rule.copies)
                for _ in range(rule.copies):
                    self._later(rule.after_ms, lambda: self._release(node, name, entry))
                return [entry]
            active.kept.append((node, name, entry))
            if rule.action == "hold" and rule.after_ms is not None:
                self._later(rule.after_ms, lambda active=active: self._let_go(active, 1))  # type: ignore[misc]  # bound per turn
            elif rule.action == "reorder" and active.left == 0:
                active.kept.reverse()
                self._let_go(active, len(active.kept))
            return []
        return [entry]

    def _let_go(self, active: _Active, count: int) -> None:
        released, active.kept = active.kept[:count], active.kept[count:]
        for node, name, entry in released:
            self._release(node, name, entry)

    def _release(self, node: str, name: str, entry: Any) -> None:
        self._released.setdefault(node, []).append((name, entry))
        self._push(node)

    def _push(self, node: str) -> None:
        """Answer the poll that waits, at the revision it asked from, with what was released."""
        future, request = self._polls.get(node, (None, None))
        if node not in self._released or future is None or request is None or future.done():
            return
        query = parse_qs(urlsplit(request.target).query)
        told: dict[str, Any] = {
            "instance": query.get("instance", [""])[0],
            "revision": int(query.get("revision", ["0"])[0]),
            "full": False,
            "items": [],
            "requests": [],
        }
        if not told["instance"]:
            return
        for name, entry in self._released.pop(node):
            told[name].append(entry)
        future.set_result(HttpResponse(200, json.dumps(told).encode()))

    def _end(self, active: _Active) -> None:
        if active in self._active:
            self._active.remove(active)
            if active.rule.action == "reorder":
                active.kept.reverse()
            self._let_go(active, len(active.kept))


def _is_poll(request: HttpRequest) -> bool:
    return request.method == "GET" and urlsplit(request.target).path.endswith("/desired")


def _matches(rule: DeliveryRule, node: str, name: str, entry: Mapping[str, Any]) -> bool:
    if _LISTS[name] != rule.topic:
        return False
    body = entry.get("desired" if name == "items" else "body") or {}
    kind = str(EventType.ATTEMPT_DESIRED) if name == "items" else entry.get("type")
    known = {**body, "node": node, "type": kind, "id": entry.get("id"), "key": entry.get("key")}
    return all(known.get(field_name) == wanted for field_name, wanted in rule.match.items())
