"""Apache Kafka in KRaft mode from its published jars: one node that is both broker and controller."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import struct
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
node.id=1
controller.quorum.voters=1@{host}:{controller}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
log.dirs={data}
# Topics come from the registry of streams, with their settings.
auto.create.topics.enable=false
# One node: with the defaults of three the first group and the first transaction would hang without an error.
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
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
    """One broker; replication factor 1."""

    kind = "kafka"
    name = "Apache Kafka"
    port_count = 2
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
        """Settings anew, since ports change; the storage is formatted once."""
        data = self.folder / "data"
        self._settings.write_text(
            SETTINGS.format(host=LOOPBACK, port=self.port, controller=self.ports[1], data=data), encoding="utf-8"
        )
        if (data / "meta.properties").exists():
            return
        # 22 characters of base64url are a valid cluster id; one that begins with a dash would be taken for an option.
        cluster = hashlib.sha256(str(self.folder).encode()).hexdigest()[:21] + "A"
        format_ = ("format", "--cluster-id", cluster, "--config", str(self._settings))
        run([*self._java(), "kafka.tools.StorageTool", *format_], self.log(), folder=self.folder)

    def command(self, node: int = 0) -> list[str]:
        """The broker."""
        return [*self._java(), "kafka.Kafka", str(self._settings)]

    async def answers(self) -> bool:
        """Whether its metadata list a broker, which is a little after the port opens."""
        return await broker_count(self.port) > 0

    def url(self) -> str:
        """For `make_transport`."""
        return f"kafka://{LOOPBACK}:{self.port}"

    @property
    def _settings(self) -> Path:
        return self.folder / "server.properties"

    def _java(self) -> list[str]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *JVM, level, "-cp", str(self.jars / "*")]


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
