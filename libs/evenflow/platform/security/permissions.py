"""Who may do what on the log, from the registry of streams alone: the access control list of a Kafka cluster.

One user for each service (`evenflow-placement` and so on), one for whoever submits by the log (`evenflow-producers`),
for those who read decisions (`evenflow-subscribers`) and charges (`evenflow-dashboards`), and one who creates topics
and writes this list (`evenflow-admin`). What agents say is written by the gateway; by `evenflow-agents` too where
agents stand on the log themselves. What is not listed is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evenflow.events.streams import STREAMS, Stream, dead_letters_of

NAMES: Final = "evenflow-"
TOPICS: Final = "evenflow."
ADMIN: Final = "evenflow-admin"
CONSOLE: Final = "console"
GATEWAY: Final = "gateway"
#: An agent on the log has a gateway of its own in its process, and so does what the gateway does.
AGENTS: Final = "agents"
SERVICES: Final = ("inventory", "placement", "link-probe", "checkpoint", "billing", GATEWAY, CONSOLE)
#: Readers outside, and the name that their groups begin with.
OUTSIDE: Final = {"subscribers": "subscribers", "dashboards": "dashboard"}
#: Streams whose writers decide alone write in transactions under ids that begin so.
TRANSACTIONS: Final = {"placement": "evenflow.placement.", "billing": "evenflow.billing."}
CLUSTER: Final = "kafka-cluster"


class Resource(StrEnum):
    """What a permission is about."""

    TOPIC = "topic"
    GROUP = "group"
    TRANSACTIONAL_ID = "transactional-id"
    CLUSTER = "cluster"


class Operation(StrEnum):
    """What is permitted; reading and writing include describing."""

    READ = "read"
    WRITE = "write"
    CREATE = "create"
    ALTER = "alter"
    DESCRIBE = "describe"
    DESCRIBE_CONFIGS = "describe-configs"
    ALTER_CONFIGS = "alter-configs"


@dataclass(frozen=True, slots=True, order=True)
class Permission:
    """One line of the list. `prefixed` = every resource whose name begins so."""

    user: str
    resource: Resource
    name: str
    operation: Operation
    prefixed: bool = False

    def row(self) -> dict[str, str | bool]:
        """For people and programs."""
        return {
            "user": self.user, "operation": str(self.operation), "resource": str(self.resource), "name": self.name,
            "prefixed": self.prefixed,
        }  # fmt: skip


def user_of(party: str) -> str:
    """The user of a writer or reader that the registry names."""
    return f"{NAMES}{party}"


def writers_of(stream: Stream, *, agents_on_log: bool = False) -> list[str]:
    """Parties that write a stream themselves."""
    found = {GATEWAY if party == AGENTS else party for party in stream.writers}
    return sorted(found | ({AGENTS} if agents_on_log and GATEWAY in found else set()))


def readers_of(stream: Stream, *, agents_on_log: bool = False) -> list[str]:
    """Parties that read a stream; the console's warden looks at whatever may have to be parked."""
    found = {*stream.readers, *([CONSOLE] if stream.dead_letters else [])}
    return sorted(found | ({AGENTS} if agents_on_log and GATEWAY in found else set()))


def permissions(streams: Iterable[Stream] = STREAMS, *, agents_on_log: bool = False) -> list[Permission]:
    """The whole list, in a fixed order."""
    found = set(_administrator())
    for stream in streams:
        readers = readers_of(stream, agents_on_log=agents_on_log)
        found |= {_topic(party, stream.name, Operation.READ) for party in readers}
        found |= {
            _topic(party, stream.name, Operation.WRITE) for party in writers_of(stream, agents_on_log=agents_on_log)
        }
        if stream.dead_letters:
            letters = dead_letters_of(stream.name)
            found.add(_topic(CONSOLE, letters, Operation.READ))
            found |= {_topic(party, letters, Operation.WRITE) for party in readers if party in SERVICES}
    for party in (*SERVICES, *([AGENTS] if agents_on_log else [])):
        # At its start a process looks whether every topic is there and as it should be.
        for operation in (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS):
            found.add(Permission(user_of(party), Resource.TOPIC, TOPICS, operation, prefixed=True))
    for party in SERVICES:
        user = user_of(party)
        for group in (f"evenflow.{party}.", f"{party}."):
            found.add(Permission(user, Resource.GROUP, group, Operation.READ, prefixed=True))
    for party, prefix in OUTSIDE.items():
        found.add(Permission(user_of(party), Resource.GROUP, prefix, Operation.READ, prefixed=True))
    for party, prefix in TRANSACTIONS.items():
        found.add(Permission(user_of(party), Resource.TRANSACTIONAL_ID, prefix, Operation.WRITE, prefixed=True))
    return sorted(found)


def users(*, agents_on_log: bool = False) -> list[str]:
    """Every user that the list names."""
    return sorted({permission.user for permission in permissions(agents_on_log=agents_on_log)})


def may(those: Iterable[Permission], user: str, operation: Operation, topic: str) -> bool:
    """Whether a user may read or write a topic."""
    return any(
        one.user == user
        and one.resource is Resource.TOPIC
        and one.operation is operation
        and (topic.startswith(one.name) if one.prefixed else topic == one.name)
        for one in those
    )


def _topic(party: str, name: str, operation: Operation) -> Permission:
    return Permission(user_of(party), Resource.TOPIC, name, operation)


def _administrator() -> Iterable[Permission]:
    for operation in (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ):
        yield Permission(ADMIN, Resource.TOPIC, TOPICS, operation, prefixed=True)
    for operation in (Operation.ALTER, Operation.DESCRIBE):
        yield Permission(ADMIN, Resource.CLUSTER, CLUSTER, operation)
