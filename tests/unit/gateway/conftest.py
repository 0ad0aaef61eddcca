"""A gateway on a log in memory, called as an ASGI application on virtual time."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from evenflow.agent.clients.exchange import HttpRequest, call_asgi
from evenflow.core.lifecycle.attempt import Wish
from evenflow.events import streams
from evenflow.events.contracts.placement import AttemptDesired, MemberPlace
from evenflow.gateway.main import build
from evenflow.gateway.settings import GatewaySettings
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.follower import Follower
from evenflow.platform.broker.outlet import Outlet
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.identity import key_from_seed, public_text
from evenflow.platform.security.signatures import session_tag, sign_receipt
from evenflow.platform.security.stamps import request_fields, stated_fields
from evenflow.platform.stores.memory import MemoryDocuments, MemoryLiveLoad, MemoryObjects
from evenflow.sim.clock import SimulatedClock, SimulatedIds
from evenflow.sim.guard import guarded
from evenflow.sim.loop import VirtualLoop
from evenflow.sim.process import Process

READ = (streams.RUNS, streams.TELEMETRY, streams.PROBES, streams.TRANSFERS, streams.ALERTS)


class Quiet:
    def info(self, *_: object, **__: object) -> None:
        pass

    debug = warning = error = info


class Door:
    """One gateway and a node's means to speak to it."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.clock = SimulatedClock(loop, 1_767_225_600_000)
        self.embedded = EmbeddedLog(clock=self.clock)
        self.embedded.provision([*READ, streams.DISPATCH, streams.NODE_REQUESTS, streams.NODES])
        self.documents, self.objects = MemoryDocuments(), MemoryObjects()
        self.seen: list[Received] = []
        self.gateways = 0
        self.key = key_from_seed("n1")
        self.session, self.session_key = "", b""

    def runtime(self, name: str) -> Runtime:
        self.gateways += 1
        process = Process(name, self.gateways, random.Random(1))
        ids = SimulatedIds(process)
        transport = EmbeddedTransport(self.embedded, clock=self.clock, ids=ids)
        return Runtime(
            name, process.instance, self.clock, ids, random.Random(1), transport, self.documents, MemoryLiveLoad(),
            self.objects, Quiet(),
        )  # fmt: skip

    async def begin(self, **settings: Any) -> None:
        self.settings = GatewaySettings(**{"token": "join-me", "secret": "ab" * 32, **settings})
        self.host = build(self.runtime("gateway"), self.settings)
        await self.host.start()
        self.outlet = Outlet(self.runtime("placement"))
        await self.outlet.start()
        self.follower = Follower(self.runtime("reader"), READ, self.seen.append, self.host.end)
        await self.follower.start()

    async def raw(self, method: str, target: str, headers: dict[str, str], body: bytes = b"") -> tuple[int, Any]:
        answer = await call_asgi(self.host.app, HttpRequest(method, target, headers, body))
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, answer.body

    async def join(self, *, key: Any = None, sign: Any = None, **changes: Any) -> tuple[int, Any]:
        key = key or self.key
        body = {
            "node": "n1", "token": "join-me", "document": {"id": "n1", "site": "east"}, "agent_version": "0.1",
            "public_key": public_text(key), **changes,
        }  # fmt: skip
        data = json.dumps(body).encode()
        fields = request_fields(node=body["node"], session="", method="POST", target="/v1/sessions")
        headers = {} if sign is False else {"x-evenflow-signature": sign_receipt(sign or key, data, fields).hex()}
        status, told = await self.raw("POST", "/v1/sessions", headers, data)
        if status == 201:
            self.session, self.session_key = told["session"], bytes.fromhex(told["session_key"])
        return status, told

    def tagged(self, method: str, target: str, body: bytes = b"", *, node: str = "n1") -> dict[str, str]:
        fields = request_fields(node=node, session=self.session, method=method, target=target)
        tag = session_tag(self.session_key, body, fields).hex()
        return {"x-evenflow-session": self.session, "x-evenflow-tag": tag}

    async def call(self, method: str, path: str, body: bytes = b"", *, node: str = "n1") -> tuple[int, Any]:
        target = f"/v1/nodes/{node}{path}"
        return await self.raw(method, target, self.tagged(method, target, body, node=node), body)

    async def send(self, *records: dict[str, Any]) -> tuple[int, Any]:
        return await self.call("POST", "/records", json.dumps({"records": list(records)}).encode())

    def record(self, body: Any, stream: str = "runs", *, sequence: int = 1, key: Any = None, **changes: Any) -> Any:
        value = body.__pydantic_serializer__.to_json(body)
        fields = stated_fields(body, node="n1", session=self.session, sequence=sequence)
        signature = (
            session_tag(self.session_key, value, fields)
            if stream == "telemetry"
            else sign_receipt(key or self.key, value, fields)
        )
        own = "default/t1" if stream == "runs" else "n1"
        return {
            "stream": stream, "type": str(body.TYPE), "id": f"e{sequence}", "key": own,
            "time_ms": 1, "value": value.decode(), "session": self.session, "sequence": sequence,
            "signature": signature.hex(), **changes,
        }  # fmt: skip

    async def desire(self, task: str = "t1", node: str = "n1", wish: Wish = Wish.RUN) -> None:
        place = MemberPlace(member=0, node=node, site="east", cpu_milli=1, memory_bytes=1, disk_bytes=0)
        body = AttemptDesired(
            tenant="default", task=task, queue="q", pool="main", epoch=1, attempt=1, generation=1, wish=wish,
            place=place,
        )  # fmt: skip
        await self.outlet.publish(Fact(streams.DISPATCH, body))

    def on(self, stream: streams.Stream) -> list[Received]:
        return [one for one in self.seen if one.topic == stream.name]


@pytest.fixture
def play():
    """Run a story against a fresh gateway."""

    def run(main, **settings):
        loop = VirtualLoop()
        doors: list[Door] = []

        async def story() -> None:
            doors.append(Door(loop))
            await doors[0].begin(**settings)
            await main(doors[0])
            await doors[0].clock.sleep(1)

        with guarded():
            try:
                loop.run_until_complete(story())
            finally:
                loop.bury()
                loop.close()
        return doors[0]

    return run
