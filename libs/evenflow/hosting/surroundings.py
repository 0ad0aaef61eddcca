"""What the services of one process share: clock, ids, log, stores; and what each of them is given of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, SecretStr, field_validator

from evenflow.core.errors import FieldRefused, Refused
from evenflow.events.streams import topics
from evenflow.hosting.operations.stores import TracedDocuments, TracedObjects
from evenflow.hosting.operations.traces import Traces, checked_collector
from evenflow.platform.broker.codec import make_wire
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.transport import EmbeddedTransport
from evenflow.platform.broker.factory import CACHE_BYTES, kafka_of, make_transport
from evenflow.platform.broker.factory import make_log as make_embedded_log
from evenflow.platform.broker.ports import Transport
from evenflow.platform.clock import Clock, Ids, RandomIds, SystemClock, system_random
from evenflow.platform.fail_points import FailPoint, no_fail_point
from evenflow.platform.observability.logs import Level, Write, make_log, stderr_line
from evenflow.platform.observability.metrics import Metrics
from evenflow.platform.runtime import Runtime
from evenflow.platform.security.access import NOBODY, Access, check_door
from evenflow.platform.settings import Settings
from evenflow.platform.stores.factory import Stores, check_kind, open_stores

#: How long a broker waits for handlers at a stop.
GRACE_S: Final = 3.0


class HostSettings(Settings):
    """Where the log and the stores are, and how much is logged. EVENFLOW_HOST_LOG and so on in the environment.

    `wire` is the form in which services write bodies; they read either. `log_cache_bytes` of a durable embedded log's
    newest records stay in memory. A service that says nothing for `group_session_ms` loses its partitions to another
    copy; the one that is started again after a kill waits for as long. On Kafka what the registry archives is copied to
    the objects every `archive_period_ms`. `operations_port` of a process of its own
    answers /health, /ready and /metrics: absent = the service's usual one, 0 = any that is free (the first line of its
    log says which). `traces` is the address of an OpenTelemetry collector (OTLP over HTTP), absent = no traces;
    `trace_ratio` of all traces are told, the same ones by every process.
    `tls_certificate_file` (with the chain behind it) and `tls_key_file` in PEM form are what console
    and gateway serve HTTPS with; beyond loopback they are needed. They are read at the start.
    `published_on_loopback` says of a container that its ports are published on its machine's loopback alone.

    Users, passwords and certificates: see docs/security.md.
    """

    log: str = Field(default="embedded:", max_length=2_000)
    documents: str = Field(default="sqlite::memory:", max_length=2_000)
    live: str = Field(default="fake:", max_length=2_000)
    objects: str = Field(default="memory:", max_length=2_000)
    log_cache_bytes: int = Field(default=CACHE_BYTES, ge=1_048_576, le=68_719_476_736)
    level: Level = "info"
    wire: Literal["json", "avro"] = "json"
    address: str = Field(default="127.0.0.1", max_length=255)
    console_port: int = Field(default=7070, ge=0, le=65_535)
    gateway_port: int = Field(default=7071, ge=0, le=65_535)
    group_session_ms: int = Field(default=10_000, ge=1_000, le=600_000)
    archive_period_ms: int = Field(default=60_000, ge=500, le=3_600_000)
    tls_certificate_file: str = Field(default="", max_length=4_096)
    tls_key_file: str = Field(default="", max_length=4_096)
    published_on_loopback: bool = False
    operations_port: int | None = Field(default=None, ge=0, le=65_535)
    traces: str = Field(default="", max_length=2_000)
    trace_ratio: float = Field(default=0.1, ge=0, le=1)
    log_user: str = Field(default="", max_length=255)
    log_password: SecretStr = NOBODY
    log_tls: bool = False
    log_ca_file: Path | None = None
    log_certificate_file: Path | None = None
    log_key_file: Path | None = None
    documents_user: str = Field(default="", max_length=255)
    documents_password: SecretStr = NOBODY
    documents_ca_file: Path | None = None
    live_user: str = Field(default="", max_length=255)
    live_password: SecretStr = NOBODY
    live_ca_file: Path | None = None
    plaintext_beyond_loopback: bool = False

    @field_validator("traces")
    @classmethod
    def _collector(cls, value: str) -> str:
        try:
            return checked_collector(value) if value else value
        except FieldRefused as refusal:
            raise ValueError(refusal.problem) from None

    def access(self) -> dict[str, Access]:
        """How to log in to each server, by the field of its URL.

        Raises FieldRefused for half a login, a URL that holds a secret or is of no known kind, and one that leaves this
        machine in the clear.
        """
        logins = {
            "log": Access(
                "log", self.log_user, self.log_password, tls=self.log_tls, ca_file=self.log_ca_file,
                certificate_file=self.log_certificate_file, key_file=self.log_key_file,
            ),
            "documents": Access(
                "documents", self.documents_user, self.documents_password, ca_file=self.documents_ca_file
            ),
            "live": Access("live", self.live_user, self.live_password, ca_file=self.live_ca_file),
            "objects": Access("objects"),
        }  # fmt: skip
        for field, login in logins.items():
            check_door(getattr(self, field), login, plaintext_beyond_loopback=self.plaintext_beyond_loopback)
        if not self.log.startswith("embedded:"):
            try:
                kafka_of(self.log)
            except Refused as refusal:
                raise FieldRefused("log", refusal.message) from refusal
        for field in ("documents", "live", "objects"):
            check_kind(field, getattr(self, field))
        return logins


def in_folder(folder: Path, settings: HostSettings) -> HostSettings:
    """The embedded profile with everything durable under one folder."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    whole = folder.resolve()
    return settings.with_changes(
        log=f"embedded:{whole}/log",
        documents=f"sqlite://{whole}/documents.db",
        objects=f"file://{whole}/objects",
    )


class Surroundings:
    """Opens log and stores once. Raises Refused when a URL is wrong or the folder is in use."""

    def __init__(
        self, settings: HostSettings, *, clock: Clock | None = None, ids: Ids | None = None, write: Write = stderr_line
    ) -> None:
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.ids: Ids = ids or RandomIds(self.clock)
        self._access = settings.access()
        self._write = write
        self.metrics: Callable[[str], Metrics] = lambda _service: Metrics()
        self.traces = Traces(settings.traces, settings.trace_ratio, self.clock)
        self.point: FailPoint = no_fail_point
        self.log: EmbeddedLog | None = None
        if settings.log.startswith("embedded:"):
            self.log = make_embedded_log(settings.log, clock=self.clock, cache_bytes=settings.log_cache_bytes)
        self.stores: Stores = open_stores(
            documents=settings.documents, live=settings.live, objects=settings.objects, access=self._access
        )

    def transport(self) -> Transport:
        """The clients of one service."""
        if self.log is not None:
            return EmbeddedTransport(self.log, clock=self.clock, ids=self.ids, graceful_timeout_s=GRACE_S)
        return make_transport(
            self.settings.log, clock=self.clock, ids=self.ids, graceful_timeout_s=GRACE_S, access=self._access["log"]
        )

    def runtime(self, name: str) -> Runtime:
        """What one incarnation of a service is given."""
        instance = self.ids.new_id()
        tracing = self.traces.tracing(name, instance)
        documents, objects = self.stores.documents, self.stores.objects
        return Runtime(
            name=name,
            instance=instance,
            clock=self.clock,
            ids=self.ids,
            random=system_random(),
            transport=self.transport(),
            documents=TracedDocuments(documents, tracing) if tracing.on else documents,
            live=self.stores.live,
            objects=TracedObjects(objects, tracing) if tracing.on else objects,
            log=self.logger(name, instance),
            wire=make_wire(self.settings.wire),
            metrics=self.metrics(name),
            tracing=tracing,
            group_session_ms=self.settings.group_session_ms,
            point=self.point,
        )

    def logger(self, name: str, instance: str = "") -> Any:
        """A logger with a name."""
        return make_log(service=name, instance=instance, clock=self.clock, level=self.settings.level, write=self._write)

    def servers(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """How to ask each server whether it is there: the topics are made on the way, nothing else is written."""
        stores = self.stores
        return {
            "log": self.provision,
            "documents": lambda: stores.documents.get("reached", "reached"),
            "live": stores.live.sites,
            "objects": lambda: stores.objects.paths("reached/"),
        }

    async def provision(self) -> None:
        """Create the topics that are missing."""
        await self.transport().provision(topics())

    async def close(self) -> None:
        """Close stores, then the log; spans go last, since closing may still tell some."""
        try:
            await self.stores.close()
            if self.log is not None:
                self.log.close()
        finally:
            self.traces.close()
