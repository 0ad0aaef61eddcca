"""Both doors under fire: every route of console and gateway called in process, every answer looked at."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse
from evenflow.core.errors import EvenflowError
from evenflow.core.product import VERSION
from evenflow.core.units import QUANTITY_MAX
from evenflow.platform.broker.codec import read_body
from evenflow.platform.security.identity import key_from_seed, public_text
from evenflow.platform.security.signatures import sign_receipt
from evenflow.platform.security.stamps import request_fields, stated_fields
from evenflow.testkit.fuzz.requests import CONSOLE, GATEWAY, TO_SIGN, Call, Route, calls_of, routes
from evenflow.testkit.fuzz.world import HTTP_OK, Target, in_world

ANSWER_WITHIN_S: Final = 120
READ_WITHIN_S: Final = 120
SHOWN_MAX: Final = 10
AFTER: Final = "after-all-those"
_TOLD_BY: Final = {CONSOLE: ("code", "path", "problem", "way_out"), GATEWAY: ("code", "message", "path")}

Say = Callable[[str], None]


@dataclass(slots=True)
class DoorFigures:
    """What was called and answered. `problems` are broken bounds, each in one line."""

    routes: dict[str, Counter[int]] = field(default_factory=dict)
    ways: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    @property
    def calls(self) -> int:
        """Requests that were answered."""
        return sum(answers.total() for answers in self.routes.values())


def fuzz_doors(count: int, seed: int, say: Say) -> DoorFigures:
    """Call every route of both doors, at least `count` requests in all."""
    every = routes()
    share = -(-count // len(every))
    figures = DoorFigures()
    made = [calls_of(route, share, seed) for route in every]
    calls = [one[index] for index in range(share) for one in made if index < len(one)]
    calls.sort(key=lambda call: call.route.endswith("/revoke"))  # last: nothing is heard of a revoked node
    say(f"{len(calls)} requests generated for {len(every)} routes, seed {seed}")
    figures.problems += in_world(lambda target: _knock(target, every, calls, figures), seed)
    return figures


async def _knock(target: Target, every: Sequence[Route], calls: Sequence[Call], figures: DoorFigures) -> list[str]:
    problems = [f"{name} is not called: add it to the fuzzing" for name in _forgotten(target, every)]
    knocker = _Knocker(target)
    for call in calls:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                answer = await knocker.send(call)
        except Exception as error:  # noqa: BLE001  whatever gets out of an application is what is looked for
            problems.append(f"{_shown(call)}: {type(error).__name__}: {error}"[:400])
            continue
        figures.routes.setdefault(f"{call.door} {call.route}", Counter())[answer.status] += 1
        figures.ways[call.how] += 1
        wrong = _wrong(call, answer)
        if wrong:
            problems.append(f"{_shown(call)}: {wrong}")
    problems += [f"{name}: {count} unread" for name, count in (await target.until_read(READ_WITHIN_S)).items()]
    await target.submit(AFTER)
    known = await target.heard_of(AFTER)
    if known != HTTP_OK:
        problems.append(f"a good task is not known afterwards: {known}")
    problems += [f"{end.name} ended: {end.why}" for end in target.ends if "was revoked" not in end.why]
    problems += [
        f"unhandled: {context.get('message')}: {context.get('exception')!r}"[:400] for context in target.errors
    ]
    return list(dict.fromkeys(problems))


def _wrong(call: Call, answer: HttpResponse) -> str:
    """What is wrong with an answer, or nothing."""
    if answer.status not in call.documented:
        return f"{answer.status} is not documented: {answer.body[:200]!r}"
    if answer.status < 400:
        return ""
    try:
        told = json.loads(answer.body)
    except ValueError:
        return f"{answer.status} without JSON: {answer.body[:200]!r}"
    if call.door == GATEWAY:
        told = told.get("error", told if "ready" in told else None)
    if not isinstance(told, dict):
        return f"{answer.status} says nothing: {answer.body[:200]!r}"
    if "ready" in told:
        return ""
    missing = [name for name in _TOLD_BY[call.door] if not isinstance(told.get(name), str)]
    words = told.get("problem") or told.get("message")
    if missing or not told.get("code") or not words:
        return f"{answer.status} does not say {missing or 'what'}: {answer.body[:200]!r}"
    return ""


def _forgotten(target: Target, every: Sequence[Route]) -> Iterable[str]:
    """Routes that the gateway serves and nobody described."""
    known = [route.name.replace("{path}", "{path:path}") for route in every if route.door == GATEWAY]
    for route in target.app(GATEWAY).routes:
        for method in sorted(route.methods or ()):
            if method != "HEAD" and f"{method} {route.path}" not in known:
                yield f"{method} {route.path}"


def _shown(call: Call) -> str:
    return f"{call.door} {call.method} {call.target[:160]} ({call.how}) {call.body[:160]!r}"


class _Knocker:
    """Sends calls: straight, in a node's session, or signed with its key."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sequence = 500_000

    async def send(self, call: Call) -> HttpResponse:
        """One call, answered."""
        if call.opens:
            return await self._target.call(call.door, self._opening(call))
        if not call.node:
            return await self._target.call(call.door, call.request)
        client = self._target.world.nodes.node(call.node).client
        if client is None or client.open is None:
            return await self._target.call(call.door, call.request)
        body = self._signed(call.body, call.node) if call.route.endswith("/records") else call.body
        return await client.call(client.open, call.method, call.target, body, timeout_ms=60_000)

    def _key(self, node: str) -> Any:
        return key_from_seed(f"{self._target.world.scenario.seed}/{node}")

    def _opening(self, call: Call) -> HttpRequest:
        key, body = self._key(call.opens), call.body
        if call.how == "valid":
            node = self._target.world.nodes.node(call.opens)
            proof = {"node": node.id, "token": self._target.world.token, "public_key": public_text(key)}
            body = json.dumps({"agent_version": VERSION, **proof, "document": node.document}).encode()
        fields = request_fields(node=call.opens, session="", method="POST", target=call.target)
        signature = sign_receipt(key, body, fields).hex()
        return HttpRequest(call.method, call.target, {**call.headers, "x-evenflow-signature": signature}, body)

    def _signed(self, body: bytes, node: str) -> bytes:
        """The records that wait for it with session, sequence and signature of a node that lies."""
        try:
            told = json.loads(body)
            waiting = [one for one in told["records"] if one["signature"] == TO_SIGN]
        except (ValueError, KeyError, TypeError, RecursionError):
            return body
        session = self._target.world.nodes.node(node).disk.session()
        for one in waiting:
            self._sequence += 1
            one |= {"session": session, "sequence": self._sequence}
            try:
                fields = stated_fields(
                    read_body(one["type"], one["value"].encode()), node=node, session=session, sequence=self._sequence
                )
                signature = sign_receipt(self._key(node), one["value"].encode(), fields).hex()
            except (EvenflowError, KeyError, ValueError, TypeError, AttributeError):
                continue
            stated = {name: min(getattr(fields, name), QUANTITY_MAX) for name in ("attempt", "member", "epoch")}
            one |= {**stated, "signature": signature, "key": f"{fields.tenant}/{fields.task}"}
        return json.dumps(told).encode("utf-8", "surrogatepass")
