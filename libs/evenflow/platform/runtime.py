"""What one process is given: the only door to time, ids, chance, the log and the stores.

A composition root builds one `Runtime`; the simulation builds one per simulated process. Services never import a
client library, the wall clock or a random source.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from evenflow.platform.broker.codec import JSON, Wire
from evenflow.platform.broker.ports import Transport
from evenflow.platform.clock import Clock, Ids
from evenflow.platform.fail_points import FailPoint, no_fail_point
from evenflow.platform.observability.metrics import Metrics
from evenflow.platform.observability.trace import OFF, Tracing
from evenflow.platform.stores.ports import Documents, LiveLoad, Objects


@dataclass(frozen=True, slots=True)
class Runtime:
    """The surroundings of one process incarnation.

    `name` is the service's name, `instance` tells its copies and restarts apart. `point` is awaited at named fail
    points (before and after each commit, publish and store write); production's does nothing.
    `wire` is how this process writes bodies; it reads whatever comes. `lean` hands records to handlers without
    FastStream's stack, for simulations of many hours. `metrics` and `tracing` are off unless the host collects them. A
    member of a group that says nothing for `group_session_ms` is replaced.
    """

    name: str
    instance: str
    clock: Clock
    ids: Ids
    random: random.Random
    transport: Transport
    documents: Documents
    live: LiveLoad
    objects: Objects
    log: Any  # structlog's bound logger: its methods are made at run time
    point: FailPoint = field(default=no_fail_point)
    wire: Wire = field(default=JSON)
    lean: bool = False
    metrics: Metrics = field(default_factory=Metrics)
    tracing: Tracing = field(default=OFF)
    group_session_ms: int = 10_000
