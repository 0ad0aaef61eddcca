"""One world under fire: production services in virtual time, and what they believe afterwards."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from aiokafka.structs import RecordMetadata

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse, call_asgi
from evenflow.core.errors import EvenflowError, Refused
from evenflow.events.envelope import AgentStamp
from evenflow.events.streams import BY_NAME, STREAMS, dead_letters_of, topics
from evenflow.hosting.registry import SERVICES
from evenflow.placement.service import PlacementService
from evenflow.platform.broker.codec import Bad, decode, read_body
from evenflow.platform.broker.dead_letters import ERROR, ORIGIN
from evenflow.platform.broker.embedded.records import DATA, InvalidRecordError
from evenflow.platform.broker.ports import Producer, Record
from evenflow.platform.security.identity import key_from_seed
from evenflow.platform.security.signatures import sign_receipt
from evenflow.platform.security.stamps import stated_fields
from evenflow.sim.guard import guarded
from evenflow.sim.scenario.file import Scenario
from evenflow.sim.verbs import VERBS
from evenflow.sim.world.composition import Composition
from evenflow.sim.world.hosting import Hosted
from evenflow.sim.world.world import Pace, World, secret_of, token_of
from evenflow.testkit.fuzz.records import Thrown, as_record
from evenflow.testkit.fuzz.surroundings import THROWN_S, world_scenario

#: Placement shows its progress in a group of this name; nobody reads those offsets back.
PLACEMENT_GROUP: Final = "placement.default-lag"
HTTP_OK: Final = 200
LOOK_S: Final = 1.0
ALONE_BYTES: Final = 500_000
UNREAD_MAX: Final = 100_000
#: Signed records of a lying agent count from here, beyond what its honest half says.
SEQUENCE_FIRST: Final = 100_000
#: What the log itself does not take: too large, or without a key where keys are all that is kept.
LOG_REFUSES: Final = (MessageSizeTooLargeError, InvalidRecordError)
TOLD: Final = ("sites", "links", "nodes", "queues", "datasets", "documents", "tasks", "ledger", "crossings", "alerts")
_MARKS: Final = ("offset", "as_of_ms", "cursor", "load")
#: Topics on which something is said of every record read, whatever it is.
_OFFSETS: Final = ("evenflow.rounds.v1",)

T = TypeVar("T")
Story = Callable[["Target"], Awaitable[T]]


@dataclass(frozen=True, slots=True)
class End:
    """A process that ended untold."""

    name: str
    why: str


@dataclass(slots=True)
class Landed:
    """What became of thrown records, by their place topic/partition/offset."""

    thrown: dict[str, Thrown] = field(default_factory=dict)
    refused: list[Thrown] = field(default_factory=list)


class Target:
    """A running world and the ways to hit it. Made by `in_world`."""

    def __init__(self, world: World, ends: list[End]) -> None:
        self.world = world
        self.ends = ends
        self._producer: Producer | None = None
        self._sequence = SEQUENCE_FIRST
        self._reader: Any = None

    # -- course --------------------------------------------------------------------------------------------------------
    async def until(self, at_s: float) -> None:
        """Let virtual time pass up to a moment of the run."""
        await self.world.until(round(at_s * 1000))

    async def pass_s(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.world.clock.sleep(seconds)

    async def throw(self, records: Iterable[Thrown]) -> Landed:
        """Write records as a producer with every right would; one larger than the log takes is refused by it."""
        if self._producer is None:
            self._producer = await self._new_producer()
        landed = Landed()
        sent: list[tuple[Thrown, asyncio.Future[RecordMetadata]]] = []
        for given in records:
            headers = self._signed(given) if given.sign else list(given.headers)
            one = replace(given, headers=tuple(headers), sign=False)
            key = one.key if one.key is not None or one.value is not None else b""
            doubtful = len(one.value or b"") > ALONE_BYTES or not key
            producer = await self._new_producer() if doubtful else self._producer
            try:
                future = await producer.send(
                    one.topic, value=one.value, key=key, headers=cast("list[tuple[str, bytes]]", headers)
                )
            except LOG_REFUSES:
                landed.refused.append(one)
            else:
                sent.append((one, future))
            if doubtful:  # by a producer of its own: what is sent behind a record that the log refuses is refused too
                await _landed(sent, landed)
                await producer.stop()
        await _landed(sent, landed)
        return landed

    async def _new_producer(self) -> Producer:
        transport = self.world._transport(self.world.clock, self.world._ids)  # noqa: SLF001  the world's own hands
        producer = transport.producer(client_id="fuzz")
        await producer.start()
        return producer

    def _signed(self, one: Thrown) -> list[tuple[str, bytes | None]]:
        """The headers with the stamp of the node that the body names, signed with its own key: a node that lies."""
        value = one.value or b""
        try:
            body = read_body(
                next(str(text, "utf-8") for name, text in one.headers if name == "ce_type" and text), value
            )
        except (EvenflowError, KeyError, ValueError, StopIteration):  # not to be signed by anybody
            return list(one.headers)
        node = str(getattr(body, "node", "") or "n3")
        session = self.world.nodes.node(node).disk.session() if node in ("n1", "n2", "n3") else "s"
        self._sequence += 1
        fields = stated_fields(body, node=node, session=session, sequence=self._sequence)
        key = key_from_seed(f"{self.world.scenario.seed}/{node}")
        try:
            signature = sign_receipt(key, value, fields).hex()
        except Refused:  # a name that can't be signed; it comes unsigned
            return list(one.headers)
        stamp = AgentStamp(
            node, session, self._sequence, fields.attempt, fields.member, fields.epoch, signature
        )  # fmt: skip
        names = ("node", "session", "sequence", "attempt", "member", "epoch", "signature")
        return [*one.headers, *((name, str(getattr(stamp, name)).encode()) for name in names)]

    async def call(self, service: str, request: HttpRequest) -> HttpResponse:
        """One request straight into a service's application."""
        return await call_asgi(self.app(service), request)

    def app(self, service: str) -> Any:
        """A service's application."""
        return self._runs(service).app

    @property
    def errors(self) -> list[dict[str, Any]]:
        """What the loop was told of errors that nobody handled."""
        return self.world.loop.errors

    async def submit(self, task: str) -> None:
        """A good task at the door, with a moment to be looked at."""
        await self.world.door.submit({"id": task, "run": {"work_s": 1}})
        await self.pass_s(5)

    async def heard_of(self, task: str) -> int:
        """The status with which the console answers for a task that placement decided about."""
        answer = await self.call("console", HttpRequest("GET", f"/api/v1/tasks/{task}", {"host": "localhost"}))
        decided = f"default/{task}" in self.leader().model.tasks
        return answer.status if decided or answer.status != HTTP_OK else 0

    async def restart(self, *names: str) -> None:
        """Kill services and start them again."""
        for name in names:
            self.world.hosting.restart(self.world.hosting.of_service(name)[0])
        await self.pass_s(10)

    def _runs(self, service: str) -> Any:
        return self.world.hosting.of_service(service)[0].runs

    # -- what came of it -----------------------------------------------------------------------------------------------
    def lag(self) -> dict[str, int]:
        """Records that groups have not read yet, where there are any: over all partitions of what a group reads."""
        log = self.world.log
        found: dict[str, int] = {}
        for group in log.groups.names():
            if group == PLACEMENT_GROUP:
                continue
            for topic in dict.fromkeys(place.topic for place in log.lag(group)):
                for index in range(BY_NAME[topic].partitions):
                    place = TopicPartition(topic, index)
                    unread = self._unread(place, log.committed(group, place) or 0)
                    if unread:
                        found[f"{group} {topic}"] = found.get(f"{group} {topic}", 0) + unread
        return found

    def behind(self) -> dict[str, int]:
        """Lag of groups, and of placement by the offsets in its own state."""
        found = self.lag()
        offsets = self.leader().model.pool.offsets if self._placement().leader is not None else {}
        left = 0
        for name in ("evenflow.tasks.v1", "evenflow.runs.v1", "evenflow.checkpoints.v1"):
            for index in range(BY_NAME[name].partitions):
                left += self._unread(TopicPartition(name, index), offsets.get(f"{name}/{index}", 0))
        return found | ({"placement": left} if left else {})

    def _unread(self, place: TopicPartition, offset: int) -> int:
        """Records from an offset on, without the markers of transactions."""
        partition = self.world.log.partition(place)
        return sum(row.kind == DATA for row in partition.read(offset, partition.stable, UNREAD_MAX))

    async def until_read(self, within_s: int) -> dict[str, int]:
        """Wait until nothing is unread; what still is after a bounded time."""
        for _ in range(within_s):
            if not self.behind():
                break
            await self.pass_s(LOOK_S)
        return self.behind()

    def _placement(self) -> PlacementService:
        return cast("PlacementService", self._runs("placement"))

    def leader(self) -> Any:
        """The decider at work."""
        return self._placement().leader

    async def records(self, topic: str) -> list[Record]:
        """Every record of a topic that can be read, partition by partition."""
        if self._reader is None:
            transport = self.world._transport(self.world.clock, self.world._ids)  # noqa: SLF001  the world's own hands
            self._reader = transport.consumer(client_id="fuzz-reader", isolation_level="read_committed")
            await self._reader.start()
        reader = self._reader
        count = next(stream.partitions for stream in topics() if stream.name == topic)
        partitions = [TopicPartition(topic, index) for index in range(count)]
        reader.assign(partitions)
        ends = await reader.end_offsets(partitions)
        await reader.seek_to_beginning(*partitions)
        found: list[Record] = []
        for partition in partitions:
            while await reader.position(partition) < ends[partition]:
                for batch in (await reader.getmany(partition, timeout_ms=10)).values():
                    found += batch
        return found

    async def parked(self) -> dict[str, str]:
        """Origins of all dead letters with their reasons."""
        found: dict[str, str] = {}
        for stream in STREAMS:
            if not stream.dead_letters:
                continue
            for letter in await self.records(dead_letters_of(stream.name)):
                headers = dict(letter.headers)
                if ORIGIN in headers:
                    found[(headers[ORIGIN] or b"").decode("utf-8", "replace")] = (headers.get(ERROR) or b"").decode()
        return found

    def overlooked(self, landed: Landed, parked: Mapping[str, str]) -> list[Thrown]:
        """What can't be read on a topic with dead letters, and was not parked."""
        missed = []
        for place, one in landed.thrown.items():
            stream = BY_NAME.get(one.topic)
            watched = stream is not None and stream.dead_letters and place not in parked
            if watched and stream is not None and isinstance(decode(as_record(one), stream), Bad):
                missed.append(one)
        return missed

    async def state(self, without: Iterable[str] = ()) -> dict[str, str]:
        """Hashes of what the world believes, part by part; records at the places `without` are left out of the log."""
        parts: dict[str, str] = {}
        leader = self.leader()
        rows = [(key, row) for key, row in leader.model.rows() if not key.startswith("pool/")]
        parts["placement model"] = _hash(repr(rows))
        tables = leader.tables
        held = (tables.nodes, tables.links, tables.datasets, tables.queues, tables.sites, tables.policy_hash)
        parts["placement tables"] = _hash(repr(held))
        for name in TOLD:
            answer = await self.call("console", HttpRequest("GET", f"/api/v1/{name}", {"host": "localhost"}))
            parts[f"console {name}"] = _hash(json.dumps(_without_marks(json.loads(answer.body)), sort_keys=True))
        documents = self.world.documents._rows  # noqa: SLF001  the store as it is
        parts["documents"] = _hash(json.dumps({name: documents[name] for name in sorted(documents)}, sort_keys=True))
        left_out = dict.fromkeys(without)
        for stream in STREAMS:
            if stream.name not in _OFFSETS:
                said = [
                    r for r in await self.records(stream.name) if f"{r.topic}/{r.partition}/{r.offset}" not in left_out
                ]
                parts[f"log {stream.name}"] = _hash("\n".join(sorted(filter(None, map(_said, said)))))
        return parts


async def _landed(sent: list[tuple[Thrown, asyncio.Future[RecordMetadata]]], landed: Landed) -> None:
    """Wait for what was sent; nothing is under way afterwards."""
    for one, future in sent:
        try:
            told = await future
        except LOG_REFUSES:
            landed.refused.append(one)
        else:
            landed.thrown[f"{told.topic}/{told.partition}/{told.offset}"] = one
    sent.clear()


def _said(record: Record) -> str:
    """A record as a line, without what is counted by offsets."""
    key = (record.key or b"").decode("utf-8", "replace")
    if key in ("offset", "pool/default") or key.startswith("log.dead-letters/"):
        return ""
    return f"{key} {(record.value or b'').decode('utf-8', 'replace')}"


def _without_marks(value: Any) -> Any:
    """JSON without positions in the log, and without live load: a reading is newer or older by chance."""
    if isinstance(value, dict):
        return {
            name: _without_marks(inner) for name, inner in value.items() if name not in ("offset", "as_of_ms", "cursor")
        }
    return [_without_marks(inner) for inner in value] if isinstance(value, list) else value


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def in_world(story: Story[T], seed: int, *, scenario: Scenario | None = None) -> T:
    """Run one story in a fresh world, from its opening up to the moment of throwing, then the story itself."""
    chosen = scenario or world_scenario(seed)
    ends: list[End] = []

    def report(hosted: Hosted, error: BaseException | None) -> None:
        ends.append(End(hosted.name, f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]))

    fixed = {"gateway": {"token": token_of(chosen.seed), "secret": secret_of(chosen.seed)}}
    composition = Composition(chosen.settings, chosen.policy, SERVICES, fixed)
    outcome: list[T] = []

    with guarded():
        world = World(chosen, composition, lambda _: None, report, Pace(lean=False, delays=False))

        async def main() -> None:
            await world.open()
            target = Target(world, ends)
            for step in chosen.steps:
                await world.until(step.at_ms)
                await VERBS[step.verb].act(world, step.arguments)
            await target.until(THROWN_S)
            outcome.append(await story(target))

        try:
            world.loop.run_until_complete(world.loop.create_task(main(), context=world.context))
        finally:
            world.close()
    return outcome[0]
