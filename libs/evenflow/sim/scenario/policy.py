"""The policy document's keys: what a scenario's `policy` may say, merged over the default."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Kind, Status, Values


def _section(name: str, about: str, *fields: Field, status: Status = "ready") -> Field:
    return Field(name, Form(f"policy {name}", about, fields).partial(), about, default={}, status=status)


def _planned(name: str, kind: Kind, about: str, *, default: Any) -> Field:
    return Field(name, kind, about, default=default, status="planned")


def _ready(name: str, kind: Kind, about: str, *, default: Any) -> Field:
    return Field(name, kind, about, default=default)


def _backoff(values: Values, path: str) -> None:
    bounds = values.get("backoff_s")
    if bounds is not None and not (len(bounds) == 2 and bounds[0] <= bounds[1]):
        raise FieldRefused(f"{path}.backoff_s", "must be [first, longest]")


_AMOUNTS: Final = Form(
    "amounts",
    "an amount by dimension",
    (
        Field("cpu", kinds.MILLI, "cores", default=0),
        Field("devices", kinds.MILLI, "devices", default=0),
        Field("memory", kinds.SIZE, "memory", default=0),
    ),
)
_CHARGE: Final = Form(
    "charge",
    "the factor each kind of ledger entry is priced with",
    tuple(
        Field(name, kinds.MILLI, f"factor of {name} entries", default=default)
        for name, default in (
            ("work", 1000),
            ("transfer", 1000),
            ("wait", 0),
            ("start", 0),
            ("stop", 0),
            ("failed_start", 0),
            ("lost", 0),
        )
    ),
)
_RETRY: Final = Form(
    "policy retry",
    "what follows a failed attempt",
    (
        _ready("backoff_s", kinds.list_of(kinds.SECONDS), "first and longest wait", default=[5_000, 300_000]),
        _ready(
            "start_failures_quarantine", kinds.integer(1, 1000), "failed starts in a row that quarantine", default=3
        ),
        _ready("avoid_failed_node", kinds.BOOLEAN, "a task avoids the node it failed on", default=True),
        _ready("memory_growth", kinds.NUMBER, "memory asked after running out, as a factor", default=2),
    ),
    check=_backoff,
)

POLICY: Final = Form(
    "policy",
    "a policy document, merged over the default",
    (
        Field("name", kinds.ID, "name of the document", default="default"),
        _section(
            "placement",
            "how nodes are chosen",
            _ready("use", kinds.ID, "the placement policy", default="default"),
            _ready("weights", kinds.map_of(kinds.NUMBER), "weights of its scores", default={}),
        ),
        _section(
            "order",
            "the order of waiting tasks",
            _ready("ageing_s", kinds.SECONDS, "wait that is worth one priority point", default=60_000),
            _planned(
                "backfill",
                kinds.choice("easy", "conservative", "off"),
                "small tasks past a reservation",
                default="easy",
            ),
            _ready("starvation_s", kinds.SECONDS, "wait after which nothing may overtake", default=60_000),
        ),
        _section(
            "fairness",
            "decayed use between queues",
            _ready("half_life_s", kinds.SECONDS, "half-life of past use", default=604_800_000),
            _ready("entry_penalty", kinds.BOOLEAN, "an admission counts at once", default=True),
        ),
        _section(
            "preemption",
            "stopping one task for another",
            _planned("by_priority", kinds.BOOLEAN, "a higher priority may preempt", default=False),
            _planned("reclaim", kinds.BOOLEAN, "a guarantee is taken back from borrowers", default=True),
            _planned("minimum_run_s", kinds.SECONDS, "run time before it may be preempted", default=0),
            _planned("per_minute_max", kinds.integer(0, 100_000), "preemptions a minute", default=60),
            _planned("on_shrink", kinds.BOOLEAN, "a smaller quota preempts", default=False),
        ),
        _section(
            "crossing",
            "running away from the data",
            _ready("margin", kinds.NUMBER, "gain needed, as a part of the value of staying", default=0.1),
            _ready("keep_copy", kinds.BOOLEAN, "the copy stays at the remote site", default=True),
        ),
        _section(
            "headroom",
            "room kept free",
            _planned("node", _AMOUNTS.kind(), "per node", default={"cpu": 0, "devices": 0, "memory": 0}),
            _planned("site", _AMOUNTS.kind(), "per site", default={"cpu": 0, "devices": 0, "memory": 0}),
        ),
        _section(
            "silence",
            "what silence means",
            _ready("tolerance_s", kinds.SECONDS, "silence after which a node is lost", default=30_000),
            _ready("hold_off_s", kinds.SECONDS, "steadiness asked of a node that returned", default=60_000),
            _ready("reconnect", kinds.choice("adopt", "stop"), "what becomes of a returning attempt", default="adopt"),
            _ready("blind_max_s", kinds.SECONDS, "longest freeze of expiry", default=900_000),
        ),
        Field("retry", _RETRY.partial(), _RETRY.about, default={}),
        _section(
            "checkpoint",
            "saved progress",
            _ready("copies", kinds.integer(1, 16), "places that hold each checkpoint", default=1),
            _ready("alert_after_s", kinds.SECONDS, "age of the newest copy that alerts", default=600_000),
        ),
        _section(
            "moves",
            "moving running tasks",
            _planned("on", kinds.BOOLEAN, "whether tasks are moved", default=False),
            _planned("cost_s", kinds.SECONDS, "cost of one move", default=10_000),
        ),
        _section(
            "billing",
            "what is charged",
            _ready("currency", kinds.TEXT, "the one currency", default="CNY"),
            Field("charge", _CHARGE.partial(), _CHARGE.about, default={}),
        ),
    ),
)

#: Settings that are numbers of the policy as well: setting → section and key.
SAME_NUMBER: Final[dict[str, tuple[str, str]]] = {
    "silence_tolerance_s": ("silence", "tolerance_s"),
    "hold_off_s": ("silence", "hold_off_s"),
    "blind_max_s": ("silence", "blind_max_s"),
    "starvation_s": ("order", "starvation_s"),
    "ageing_s": ("order", "ageing_s"),
    "half_life_s": ("fairness", "half_life_s"),
    "minimum_run_s": ("preemption", "minimum_run_s"),
    "alert_after_s": ("checkpoint", "alert_after_s"),
    "start_failures_quarantine": ("retry", "start_failures_quarantine"),
}


def check_agreement(settings: Values, policy: Values) -> None:
    """Raise FieldRefused when a number stands in both `settings` and `policy` with different values."""
    for setting, (section, key) in SAME_NUMBER.items():
        written = policy.get(section, {}).get(key)
        if setting in settings and written is not None and settings[setting] != written:
            raise FieldRefused(f"settings.{setting}", f"policy.{section}.{key} says another value; write it once")
