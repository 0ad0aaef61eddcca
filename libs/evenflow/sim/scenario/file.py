"""The fields of a scenario file and the values they become.

Everything is in exact units: milliseconds, milli-devices, bytes, micro-units. What a verb sends to a door stays as
it was written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.policy import POLICY
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.scenario.settings import SETTINGS
from evenflow.sim.scenario.written import Written

FORMAT_VERSION: Final = 1
#: 2026-01-01T00:00:00Z, the wall clock at t = 0 unless the file says otherwise.
START_MS: Final = 1_767_225_600_000
COPIES_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class Step:
    """One verb at one time. `number` is its place in the file, from 0."""

    at_ms: int
    verb: str
    arguments: Any
    number: int


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expectation, recognised as a form of `sim.expectations`. `written` is how the file says it."""

    form: str
    values: Values
    written: Any
    number: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """One file, read. Lists of mappings hold the forms below, defaults filled in."""

    name: str
    start_ms: int
    about: str
    seed: int
    until_ms: int
    settings: Values
    policy: Values
    documents: Written
    sites: list[Values]
    links: list[Values]
    nodes: list[Values]
    queues: list[Values]
    datasets: list[Values]
    steps: list[Step]
    skips_impossible_steps: bool = False
    expectations: list[Expectation] = field(default_factory=list)


SITE: Final = Form(
    "site",
    "nodes that share a fast network and an uplink",
    (
        Field("id", kinds.ID, "name of the site", required=True),
        Field("region", kinds.TEXT, "region it lies in", default=""),
        Field("city", kinds.TEXT, "city", default=""),
        Field("data_centre", kinds.TEXT, "data centre", default=""),
        Field("latitude", kinds.NUMBER, "degrees north", default=0),
        Field("longitude", kinds.NUMBER, "degrees east", default=0),
        Field("owner", kinds.TEXT, "who owns it", default=""),
        Field("store", kinds.BOOLEAN, "holds checkpoints and outputs", default=True, status="planned"),
        Field("upload", kinds.RATE, "rate of its uplink, bits per second"),
    ),
)

LINK: Final = Form(
    "link",
    "a directed path between two sites",
    (
        Field("from", kinds.ID, "site it leaves", required=True),
        Field("to", kinds.ID, "site it reaches", required=True),
        Field("round_trip_ms", kinds.NUMBER, "round trip", default=0),
        Field("bandwidth", kinds.RATE, "bits per second", default=10 * 10**9),
        Field("loss", kinds.NUMBER, "part of packets lost", default=0),
        Field("price_per_gb", kinds.MONEY, "price of 10^9 bytes", default=0),
        Field("both_ways", kinds.BOOLEAN, "the way back is the same", default=True),
    ),
)

SLICE: Final = Form(
    "slice",
    "a hardware partition of a device",
    (
        Field("profile", kinds.TEXT, "name of the profile", required=True),
        Field("count", kinds.integer(1, 64), "how many", required=True),
    ),
)

DEVICES: Final = Form(
    "devices",
    "a node's accelerators",
    (
        Field("model", kinds.ID, "row of the catalogue", required=True),
        Field("count", kinds.integer(0, 64), "how many", default=1),
        Field("memory", kinds.SIZE, "memory of each; the catalogue's unless said"),
        Field("slices", kinds.form_list(SLICE), "hardware partitions", default=[], status="planned"),
    ),
)

NODE: Final = Form(
    "node",
    "a machine with its agent",
    (
        Field("id", kinds.ID_TEMPLATE, "name; {i} with copies", required=True),
        Field("site", kinds.ID, "its site; the only one unless said"),
        Field("rack", kinds.ID_TEMPLATE, "its rack; one of its own unless said"),
        Field("cpu", kinds.MILLI, "cores", default=64_000),
        Field("memory", kinds.SIZE, "memory", default=512 * 2**30),
        Field("disk", kinds.SIZE, "disk", default=4 * 10**12),
        Field("devices", DEVICES.kind(), "accelerators"),
        Field("price_per_hour", kinds.MONEY, "price of one device hour", default=0),
        Field("cpu_price_per_hour", kinds.MONEY, "price of one core hour", default=0),
        Field("class", kinds.choice("core", "normal"), "kept for big work, or not", default="normal", status="planned"),
        Field("labels", kinds.map_of(kinds.TEXT), "labels", default={}),
        Field("copies", kinds.integer(1, COPIES_MAX), "nodes made of this entry", default=1),
    ),
)

AMOUNTS: Final = Form(
    "amounts",
    "an amount by dimension",
    (
        Field("devices", kinds.MILLI, "devices and shares"),
        Field("cpu", kinds.MILLI, "cores"),
        Field("memory", kinds.SIZE, "memory"),
        Field("disk", kinds.SIZE, "disk"),
    ),
)

QUEUE: Final = Form(
    "queue",
    "where tasks wait",
    (
        Field("id", kinds.ID, "name of the queue", required=True),
        Field("parent", kinds.ID, "queue above it", default="root", status="planned"),
        Field("guaranteed", AMOUNTS.partial(), "what it can always have", default={}, status="planned"),
        Field("borrowing_limit", AMOUNTS.partial(), "most it may borrow", default={}, status="planned"),
        Field("lending_limit", AMOUNTS.partial(), "most it lends", default={}, status="planned"),
        Field("limit", AMOUNTS.partial(), "most it may use, met exactly", default={}),
        Field("weight", kinds.NUMBER, "its part among its siblings", default=1, status="planned"),
        Field(
            "order",
            kinds.choice("default", "strict"),
            "whether the first waiting task holds back others",
            default="default",
        ),
        Field("waiting_limit", kinds.integer(0, 1_000_000), "most tasks that may wait"),
        Field("budget", kinds.MONEY, "most it may spend", status="planned"),
    ),
)

COPY: Final = Form(
    "copy",
    "a copy of a dataset",
    (
        Field("site", kinds.ID, "where it is", required=True),
        Field("authoritative", kinds.BOOLEAN, "never evicted", default=False),
    ),
)

DATASET: Final = Form(
    "dataset",
    "data that tasks read",
    (
        Field("id", kinds.ID, "name of the dataset", required=True),
        Field("size", kinds.SIZE, "bytes", required=True),
        Field("residency", kinds.list_of(kinds.TEXT), "regions that it may not leave", default=[]),
        Field("copies", kinds.form_list(COPY), "where it is at the start", default=[]),
    ),
)


def _check_version(values: Values, _path: str) -> None:
    if values["version"] != FORMAT_VERSION:
        raise FieldRefused("version", f"must be {FORMAT_VERSION}")


FILE: Final = Form(
    "a scenario",
    "one scenario file",
    (
        Field("version", kinds.integer(0, 1_000), "version of the format", required=True),
        Field("name", kinds.ID, "name; the file's stem unless said"),
        Field("start", kinds.MOMENT, "wall clock at t = 0", default=START_MS),
        Field("about", kinds.TEXT, "one line", default=""),
        Field("seed", kinds.integer(0, 2**63 - 1), "seed of every draw", default=0),
        Field("until", kinds.SECONDS, "end of the run", required=True),
        Field("settings", SETTINGS.partial(), "service settings", default={}),
        Field("policy", POLICY.partial(), "policy over the default", default={}),
        Field("sites", kinds.form_list(SITE), "sites", default=[]),
        Field("links", kinds.form_list(LINK), "links", default=[]),
        Field("nodes", kinds.form_list(NODE), "nodes", default=[]),
        Field("queues", kinds.form_list(QUEUE), "queues", default=[]),
        Field("datasets", kinds.form_list(DATASET), "datasets", default=[]),
        Field(
            "impossible_steps",
            kinds.choice("refuse", "skip"),
            "a step that finds nothing to act on: the file is wrong, or nothing happens",
            default="refuse",
        ),
        Field("steps", kinds.list_of(kinds.ANY_MAP), "what happens, each {at, verb}", default=[]),
        Field("expect", kinds.list_of(kinds.ANY_MAP), "what must hold", default=[]),
    ),
    check=_check_version,
)
