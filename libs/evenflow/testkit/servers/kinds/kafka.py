"""Apache Kafka in KRaft mode from its published jars: nodes that are both broker and controller, one or three."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evenflow.core.errors import Unavailable
from evenflow.testkit.servers.artifacts import Artifact, Say, check_files, obtain, run
from evenflow.testkit.servers.kinds.server import Server, ask
from evenflow.testkit.servers.process import LOOPBACK

#: A small, quickly started machine; for rates use more memory, G1 and the second compiler.
JVM: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

SETTINGS: Final = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://{host}:{port},RELAYED://{host}:{behind},CONTROLLER://{host}:{controller}
# Who begins with a relay is sent on to that relay, never past it.
advertised.listeners=PLAINTEXT://{host}:{port},RELAYED://{host}:{relay}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
# Topics come from the registry of streams, with their settings.
auto.create.topics.enable=false
# On one node the first group and the first transaction would hang without an error with the defaults of three.
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={in_sync}
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={in_sync}
default.replication.factor={copies}
min.insync.replicas={in_sync}
# Tests wait for rebalances, compaction and expiry: let each happen at once.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=300
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
log.cleaner.backoff.ms=100
log.retention.check.interval.ms=300
log.initial.task.delay.ms=100
# 128 MB of the heap by default.
log.cleaner.dedupe.buffer.size=4194304
num.network.threads=2
num.io.threads=4
"""


class KafkaJars(Artifact):
    """The broker and what it needs, from Maven's repository."""

    name = "kafka"
    material = "local/kafka"
    programs = ("mvn",)
    install = "install your system's maven package"

    def build(self, into: Path, log: Path) -> None:
        """Copy the jars and hold each to its checksum."""
        command = ("mvn", "-q", "-B", "-ntp", "-f", str(self.pins / "pom.xml"), "dependency:copy-dependencies")
        run([*command, "-DincludeScope=runtime", f"-DoutputDirectory={into}"], log, folder=into)
        check_files(into, self.pins / "jars.sha256")


class Kafka(Server):
    """One broker; replication factor 1.

    Its ports: clients', controllers', the one behind a relay, the relay's own. The last two serve who tries how clients
    do over a bad way (`relay`): nobody listens on the relay's port unless somebody starts one there.
    """

    kind = "kafka"
    name = "Apache Kafka"
    port_count = 4
    in_sync = 1
    jars: Path

    def obtain(self, say: Say) -> None:
        """The jars; Java 17 or newer must be there."""
        artifact = KafkaJars(self.root)
        self.jars = obtain(artifact, self.cache, say)
        if shutil.which("java") is None:
            raise Unavailable(
                "Apache Kafka needs java 17 or newer: install your system's openjdk-17-jre-headless package"
            )

    def prepare(self) -> None:
        """Settings anew, since ports change; each node's storage is formatted once."""
        for node in range(self.node_count):
            self._prepare(node)

    def settings(self, template: str, **values: object) -> str:
        """A broker's properties."""
        return template.format(**values)

    def format_options(self) -> list[str]:
        """What else the storage is made with."""
        return []

    def command(self, node: int = 0) -> list[str]:
        """One broker."""
        return [*self._java(), "kafka.Kafka", str(self._settings(node))]

    async def answers(self) -> bool:
        """Whether each lists all brokers, which is a little after its port opens."""
        counts = await asyncio.gather(*(broker_count(port) for port in self.client_ports))
        return min(counts) >= self.node_count

    def url(self) -> str:
        """For `make_transport`."""
        return f"kafka://{','.join(f'{LOOPBACK}:{port}' for port in self.client_ports)}"

    @property
    def client_ports(self) -> Sequence[int]:
        """One for each node."""
        return self.ports[: self.node_count]

    @property
    def listens_on(self) -> Sequence[int]:
        """All but the relays' own."""
        return self.ports[: 3 * self.node_count]

    def relay(self, node: int = 0) -> tuple[int, int]:
        """The port that a relay listens on, and the one it hands on to."""
        return self._port(3, node), self._port(2, node)

    def _port(self, purpose: int, node: int) -> int:
        return self.ports[purpose * self.node_count + node]

    def _prepare(self, node: int) -> None:
        data = self.folder / ("data" if self.node_count == 1 else f"data-{node}")
        voters = (f"{number + 1}@{LOOPBACK}:{self._port(1, number)}" for number in range(self.node_count))
        relay, behind = self.relay(node)
        settings = self.settings(
            SETTINGS,
            node=node + 1,
            voters=",".join(voters),
            host=LOOPBACK,
            port=self._port(0, node),
            controller=self._port(1, node),
            behind=behind,
            relay=relay,
            data=data,
            copies=self.node_count,
            in_sync=self.in_sync,
        )
        self._settings(node).touch(mode=0o600)
        self._settings(node).write_text(settings, encoding="utf-8")
        if (data / "meta.properties").exists():
            return
        # 22 characters of base64url are a valid cluster id; one that begins with a dash would be taken for an option.
        cluster = hashlib.sha256(str(self.folder).encode()).hexdigest()[:21] + "A"
        format_ = ("format", "--cluster-id", cluster, "--config", str(self._settings(node)), *self.format_options())
        run([*self._java(), "kafka.tools.StorageTool", *format_], self.log(node), folder=self.folder)

    def _settings(self, node: int) -> Path:
        return self.folder / ("server.properties" if self.node_count == 1 else f"server-{node}.properties")

    def _java(self) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *JVM, level, "-cp", str(self.jars / "*")]


class KafkaCluster(Kafka):
    """Three brokers: each record on all, written once two of them have it."""

    kind = "kafka-cluster"
    name = "Apache Kafka, three brokers"
    port_count = 12
    node_count = 3
    in_sync = 2

    def url(self) -> str:
        """For `make_transport`, with the copies that topics are made with."""
        return f"{super().url()}?replication={self.node_count}"


async def broker_count(port: int) -> int:
    """Brokers in an answer to a Metadata request (version 1, no topics); 0 while it is not ready."""
    found = 0

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        nonlocal found
        client = b"ready"
        request = struct.pack(">hhih", 3, 1, 1, len(client)) + client + struct.pack(">i", 0)
        writer.write(struct.pack(">i", len(request)) + request)
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        answer = await reader.readexactly(length)
        found = struct.unpack_from(">i", answer, 4)[0]  # behind the request's number
        return True

    await ask(port, exchange)
    return found
