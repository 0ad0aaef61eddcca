"""Topics and permissions on a Kafka cluster, by an administrator: what `evenflow acls apply` does."""

from __future__ import annotations

import os
from pathlib import Path

from evenflow.core.errors import FieldRefused
from evenflow.events.streams import topics
from evenflow.hosting.surroundings import HostSettings
from evenflow.platform.broker.factory import make_transport
from evenflow.platform.broker.kafka import KafkaTransport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.security.acls import Applied
from evenflow.platform.security.permissions import permissions
from evenflow.platform.settings import load_settings


async def apply_permissions(file: Path | None, *, agents_on_log: bool) -> Applied:
    """Create what topics are missing, then the permissions. Raises Refused, or Unavailable."""
    host = load_settings(HostSettings, "host", file=file, environment=os.environ)
    if not host.log.startswith("kafka://"):
        raise FieldRefused("log", "is no Kafka, which alone has users: set EVENFLOW_HOST_LOG=kafka://host:port")
    clock = SystemClock()
    transport = make_transport(host.log, clock=clock, ids=RandomIds(clock), access=host.access()["log"])
    assert isinstance(transport, KafkaTransport)  # noqa: S101  by its scheme
    await transport.provision(topics())
    return await transport.permit(permissions(agents_on_log=agents_on_log))
