"""Kafka, Redis and the document stand-in with TLS and users, on loopback."""

from __future__ import annotations

import asyncio
import logging
import ssl
from pathlib import Path
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from pydantic import SecretStr

from evenflow.platform.clock import SystemClock
from evenflow.platform.security.access import Access
from evenflow.platform.security.kafka_login import client_security
from evenflow.platform.security.permissions import user_of, users
from evenflow.testkit.locked.authority import Authority
from evenflow.testkit.servers.kinds.documents import DocumentServer
from evenflow.testkit.servers.kinds.kafka import Kafka
from evenflow.testkit.servers.kinds.redis import RedisServer
from evenflow.testkit.servers.process import LOOPBACK

#: The one whom the broker itself logs in as; it may do everything.
ROOT: Final = "root"
ANSWER_MS: Final = 3_000
LISTENERS: Final = """
listeners=SASL_SSL://{host}:{port},CONTROLLER://{host}:{controller}
advertised.listeners=SASL_SSL://{host}:{port}
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule \
required username="{root}" password="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={tls}/kafka.pem
ssl.truststore.type=PEM
ssl.truststore.location={tls}/ca.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
# Nobody is the controller's own listener, on loopback; no client can come in by it.
super.users=User:{root};User:ANONYMOUS
allow.everyone.if.no.acl.found=false
"""


def password_of(user: str) -> str:
    """A password of tests: it opens nothing that outlives them."""
    return f"{user}-on-loopback"


def made_certificates(folder: Path, name: str) -> Path:
    """The folder with `ca.pem` and a server's certificate, made once."""
    tls = folder / "tls"
    if not (tls / f"{name}.pem").exists():
        Authority(tls, SystemClock()).issue(name)
    return tls


class LockedKafka(Kafka):
    """One broker that lets in by SCRAM over TLS alone, and permits nothing that is not listed."""

    name = "Apache Kafka behind TLS, SCRAM and permissions"

    def settings(self, template: str, **values: object) -> str:
        """As ever, behind another listener."""
        tls = made_certificates(self.folder, "kafka")
        others = (
            "listeners=",
            "advertised.listeners=",
            "listener.security.protocol.map=",
            "inter.broker.listener.name=",
        )
        kept = [row for row in template.splitlines() if not row.startswith(others)]
        return ("\n".join(kept) + LISTENERS).format(**values, root=ROOT, password=password_of(ROOT), tls=tls)

    def format_options(self) -> list[str]:
        """A user for each name in the list of permissions."""
        options: list[str] = []
        for user in [ROOT, *users(agents_on_log=True)]:
            options += ["--add-scram", f"SCRAM-SHA-512=[name={user},password={password_of(user)}]"]
        return options

    def access(self, user: str) -> Access:
        """How a user logs in."""
        return Access("log", user, SecretStr(password_of(user)), ca_file=self.folder / "tls" / "ca.pem")

    async def answers(self) -> bool:
        """Whether its own user gets a list of topics."""
        login = self.access(ROOT)
        logger, level = logging.getLogger("aiokafka"), logging.getLogger("aiokafka").level
        logger.setLevel(logging.CRITICAL)  # it is asked until it answers; each refusal would be a line
        admin = AIOKafkaAdminClient(
            bootstrap_servers=f"{LOOPBACK}:{self.port}",
            request_timeout_ms=ANSWER_MS,
            **client_security(login, login.context()),
        )
        try:
            await admin.start()
            await admin.list_topics()
        except (KafkaError, OSError):
            return False
        finally:
            await admin.close()
            logger.setLevel(level)
        return True

    def host_environment(self, service: str) -> dict[str, str]:
        """What a service's process is told of its log; the password stands in a file beside."""
        user = user_of(service)
        word = self.folder / f"{user}.password"
        word.touch(mode=0o600)
        word.write_text(password_of(user), encoding="utf-8")
        return {
            "EVENFLOW_HOST_LOG": self.url(),
            "EVENFLOW_HOST_LOG_USER": user,
            "EVENFLOW_HOST_LOG_PASSWORD_FILE": str(word),
            "EVENFLOW_HOST_LOG_CA_FILE": str(self.folder / "tls" / "ca.pem"),
        }


_READS: Final = "+ping +hello +auth +select +smembers +exists +hmget"
_WRITES: Final = "+sadd +eval +evalsha +script|load +hincrby +hset"
#: Inventory writes live load, the console reads it; no other service looks.
REDIS_USERS: Final = (
    "user default off",
    f"user {{inventory}} on >{{inventory_word}} ~evenflow:load* resetchannels {_READS} {_WRITES}",
    f"user {{console}} on >{{console_word}} %R~evenflow:load* resetchannels {_READS}",
)


class LockedRedis(RedisServer):
    """One server on its TLS port, where inventory writes and the console reads."""

    name = "Redis behind TLS and users"

    def prepare(self) -> None:
        """The certificate and the users."""
        made_certificates(self.folder, "redis")
        words = {"inventory": user_of("inventory"), "console": user_of("console")}
        words |= {f"{name}_word": password_of(user) for name, user in list(words.items())}
        rows = [row.format(**words) for row in REDIS_USERS]
        self._users.touch(mode=0o600)
        self._users.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")

    @property
    def _users(self) -> Path:
        return self.folder / "users.acl"

    def command(self, node: int = 0) -> list[str]:
        """No port in the clear."""
        tls = self.folder / "tls"
        kept = ("--save", "", "--appendonly", "no", "--dir", str(self.folder), "--bind", LOOPBACK)
        files = ("--tls-cert-file", str(tls / "redis.crt"), "--tls-key-file", str(tls / "redis.key"))
        ports = ("--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no")
        trust = ("--tls-ca-cert-file", str(tls / "ca.pem"), "--aclfile", str(self._users))
        return [self.program(), *kept, *ports, *files, *trust]

    async def answers(self) -> bool:
        """Whether it asks who is there."""
        context = ssl.create_default_context(cafile=str(self.folder / "tls" / "ca.pem"))
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port, ssl=context)
                try:
                    writer.write(b"PING\r\n")
                    return (await reader.readline()).startswith(b"-NOAUTH")
                finally:
                    writer.close()
                    await writer.wait_closed()
        except (OSError, TimeoutError):
            return False

    def url(self) -> str:
        """Its TLS port."""
        return f"rediss://{LOOPBACK}:{self.port}/0"

    def access(self, user: str) -> Access:
        """How a user logs in."""
        return Access("live", user, SecretStr(password_of(user)), ca_file=self.folder / "tls" / "ca.pem")


class LockedDocuments(DocumentServer):
    """The stand-in over TLS; users are made before `locked` asks for them."""

    name = "the document stand-in behind TLS and users"
    locked = False

    def prepare(self) -> None:
        """The certificate and the store's folder."""
        made_certificates(self.folder, "documents")
        super().prepare()

    def command(self, node: int = 0) -> list[str]:
        """As ever, over TLS; with `locked` only for those who log in."""
        tls = self.folder / "tls"
        files = ("--tls-cert-file", str(tls / "documents.crt"), "--tls-key-file", str(tls / "documents.key"))
        return [*super().command(node), *files, *(("--auth",) if self.locked else ())]

    async def answers(self) -> bool:
        """Whether it speaks TLS."""
        context = ssl.create_default_context(cafile=str(self.folder / "tls" / "ca.pem"))
        try:
            async with asyncio.timeout(1):
                _, writer = await asyncio.open_connection(LOOPBACK, self.port, ssl=context)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError):
            return False
        return True

    def access(self, user: str) -> Access:
        """How a user logs in; nobody before it is locked."""
        word = password_of(user) if user else ""
        return Access("documents", user, SecretStr(word), ca_file=self.folder / "tls" / "ca.pem")
