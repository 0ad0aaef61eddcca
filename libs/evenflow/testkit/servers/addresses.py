"""Where the servers are, as environment settings: for the contract suites and for the product's own processes.

EVENFLOW_TEST_KAFKA_URL           kafka://host:port
EVENFLOW_TEST_REDIS_URL           redis://host:port/0
EVENFLOW_TEST_REDIS_CLUSTER_URL   redis+cluster://host:port,host:port,host:port
EVENFLOW_TEST_MONGODB_URL         mongodb://host:port/database; MONGODB_URI says the same
EVENFLOW_TEST_S3_URL              s3://bucket/prefix?endpoint=…&region=…
                                  and its keys: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

KINDS: Final = ("kafka", "redis", "redis-cluster", "documents", "objects")
#: What one set of services needs.
NEEDED: Final = ("kafka", "redis", "documents", "objects")
#: The same with three brokers.
NEEDED_BY_THREE: Final = ("kafka-cluster", "redis", "documents", "objects")
VARIABLES: Final = {
    "kafka": "EVENFLOW_TEST_KAFKA_URL",
    "redis": "EVENFLOW_TEST_REDIS_URL",
    "redis-cluster": "EVENFLOW_TEST_REDIS_CLUSTER_URL",
    "documents": "EVENFLOW_TEST_MONGODB_URL",
    "objects": "EVENFLOW_TEST_S3_URL",
}
#: What operators call the same address elsewhere.
ALSO: Final = {"documents": "MONGODB_URI"}
#: The product's own names.
HOST_VARIABLES: Final = {
    "kafka": "EVENFLOW_HOST_LOG",
    "kafka-cluster": "EVENFLOW_HOST_LOG",
    "redis": "EVENFLOW_HOST_LIVE",
    "documents": "EVENFLOW_HOST_DOCUMENTS",
    "objects": "EVENFLOW_HOST_OBJECTS",
}


@dataclass(frozen=True)
class Addresses:
    """The URL of each kind of server that is there, and the keys of the object store. `origin` says who named each."""

    urls: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[str]:
        """Kinds of server that are not there."""
        return [kind for kind in KINDS if kind not in self.urls]

    def joined(self, other: Addresses) -> Addresses:
        """These, and the other's where these have none."""
        return Addresses({**other.urls, **self.urls}, {**other.keys, **self.keys}, {**other.origin, **self.origin})

    def environment(self) -> dict[str, str]:
        """What the contract suites read."""
        return {VARIABLES[kind]: self.urls[kind] for kind in KINDS if kind in self.urls} | dict(self.keys)

    def host_environment(self) -> dict[str, str]:
        """What the product's processes read."""
        return {name: self.urls[kind] for kind, name in HOST_VARIABLES.items() if kind in self.urls} | dict(self.keys)


def addresses_from(environment: Mapping[str, str]) -> Addresses:
    """What the environment names; empty settings count as absent."""
    urls, origin = {}, {}
    for kind in KINDS:
        for name in (VARIABLES[kind], ALSO.get(kind)):
            if name is not None and environment.get(name) and kind not in urls:
                urls[kind], origin[kind] = environment[name], name
    return Addresses(urls, {}, origin)
