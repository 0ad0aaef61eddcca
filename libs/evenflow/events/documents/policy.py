"""The policy document, merged over a base: what it does not say stays as it was."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from evenflow.core.placement.policy import DEFAULT_POLICY, SCORE_WEIGHTS_PPM, Policy, Room
from evenflow.core.units import MICRO, decimal_text
from evenflow.events.documents import fields as f
from evenflow.events.documents import forms
from evenflow.events.documents import quantities as q
from evenflow.events.documents.task_specification import canonical_body

_duration = q.scaled(1_000)
_span = q.scaled(1_000, low=1)
_ratio = q.scaled(MICRO, high=1_000 * MICRO)
_amount = q.scaled(1_000)
_PERCENT: Final = re.compile(r"(?P<number>[0-9.]{1,10})%\Z")
_PERCENT_GRAMMAR: Final = r"(100(\.0{1,6})?|[1-9]?[0-9](\.[0-9]{1,4}0{0,4})?)%"
_CURRENCY_GRAMMAR: Final = "[A-Z]{3}"
_CURRENCY: Final = re.compile(rf"{_CURRENCY_GRAMMAR}\Z")
BACKOFF_MAX_MS: Final = 86_400_000


@forms.takes(forms.Either((forms.form_of(_amount), forms.Pattern(_PERCENT_GRAMMAR))))
def _read_room(value: object) -> Room:
    match = _PERCENT.match(value) if isinstance(value, str) else None
    if match is None:
        return Room(amount_milli=_amount(value))
    share: int = q.scaled(MICRO // 100, high=MICRO)(match["number"])
    return Room(share_ppm=share)


@forms.takes(forms.Pattern(_CURRENCY_GRAMMAR))
def _read_currency(value: object) -> str:
    if not isinstance(value, str) or not _CURRENCY.match(value):
        f.refuse("must be the three capital letters of a currency")
    return value


_read_pause = q.scaled(1_000, low=1, high=BACKOFF_MAX_MS)


@forms.takes(forms.Items(_read_pause, 2, 2))
def _read_backoff(value: object) -> tuple[int, int]:
    bounds = f.read_list(value, _read_pause, 2)
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        f.refuse("must be two durations: the first wait, and the longest")
    return bounds[0], bounds[1]


_WEIGHTS: Final[dict[str, f.Reader]] = {name: _ratio for name, _ in SCORE_WEIGHTS_PPM}
_CHARGES: Final[dict[str, f.Reader]] = dict.fromkeys(
    ("work", "transfer", "wait", "start", "stop", "failed_start", "lost", "correction"), _ratio
)


def _map_of(readers: Mapping[str, f.Reader]) -> f.Reader:
    """Read a map and keep it as it is: it is merged later."""
    return f.map_of(readers)(dict)


_HEADROOM: Final[dict[str, dict[str, f.Reader]]] = {
    "node": {"cpu": _read_room, "devices": _read_room},
    "site": {"devices": _read_room},
}

SECTIONS: Final[dict[str, dict[str, f.Reader]]] = {
    "placement": {"use": f.read_id, "weights": _map_of(_WEIGHTS)},
    "order": {"ageing_s": _span, "backfill": f.one_of("easy", "conservative", "off"), "starvation_s": _span},
    "fairness": {"half_life_s": _span, "entry_penalty": f.read_bool},
    "preemption": {
        "by_priority": f.read_bool,
        "reclaim": f.read_bool,
        "minimum_run_s": _duration,
        "per_minute_max": q.integer(0, 1_000_000),
        "on_shrink": f.read_bool,
    },
    "crossing": {"margin": _ratio, "keep_copy": f.read_bool},
    "headroom": {name: _map_of(parts) for name, parts in _HEADROOM.items()},
    "silence": {
        "tolerance_s": _span,
        "hold_off_s": _duration,
        "reconnect": f.one_of("adopt", "stop"),
        "blind_max_s": _span,
    },
    "retry": {
        "backoff_s": _read_backoff,
        "start_failures_quarantine": q.integer(1, 1_000),
        "avoid_failed_node": f.read_bool,
        "memory_growth": q.scaled(MICRO, low=MICRO, high=16 * MICRO),
    },
    "checkpoint": {"copies": q.integer(1, 16), "alert_after_s": _span},
    "moves": {"on": f.read_bool, "cost_s": _duration},
    "billing": {"currency": _read_currency, "charge": _map_of(_CHARGES)},
}
_FIELDS: Final[dict[str, f.Reader]] = {
    "name": f.read_id,
    **{section: _map_of(readers) for section, readers in SECTIONS.items()},
}
read_policy: Final = _map_of(_FIELDS)
_KEPT_AS: Final = {"margin": "margin_ppm", "memory_growth": "memory_growth_ppm"}


def parse_policy(document: object, base: Policy = DEFAULT_POLICY) -> Policy:
    """Read a policy document over `base`. Raises FieldRefused for the first problem."""
    return f.parsed(lambda value: _merged(read_policy(value), base), document)


def policy_problems(document: object) -> list[f.Problem]:
    """List every problem of a policy document."""
    return f.problems_of(read_policy, document)


def _merged(given: dict[str, Any], base: Policy) -> Policy:
    changes: dict[str, Any] = {}
    for name, entry in given.items():
        changes[name] = entry if name == "name" else _section(name, entry, getattr(base, name))
    return dataclasses.replace(base, **changes)


def _section(name: str, given: dict[str, Any], base: Any) -> Any:
    """Put the given keys of one section over its base."""
    special = _SPECIAL.get(name)
    kept = special(dict(given), base) if special else given
    renamed: dict[str, Any] = {}
    for key, entry in kept.items():
        renamed[_KEPT_AS.get(key, f"{key[:-2]}_ms" if key.endswith("_s") else key)] = entry
    return dataclasses.replace(base, **renamed)


def _placement(given: dict[str, Any], base: Any) -> dict[str, Any]:
    if "weights" in given:
        given["weights_ppm"] = tuple(sorted({**dict(base.weights_ppm), **given.pop("weights")}.items()))
    return given


def _headroom(given: dict[str, Any], _base: Any) -> dict[str, Any]:
    return {f"{place}_{part}": room for place, parts in given.items() for part, room in parts.items()}


def _retry(given: dict[str, Any], _base: Any) -> dict[str, Any]:
    if "backoff_s" in given:
        given["backoff_first_ms"], given["backoff_max_ms"] = given.pop("backoff_s")
    return given


def _billing(given: dict[str, Any], base: Any) -> dict[str, Any]:
    if "charge" in given:
        given["charge_ppm"] = dataclasses.replace(base.charge_ppm, **given.pop("charge"))
    return given


_SPECIAL: Final[dict[str, Callable[[dict[str, Any], Any], dict[str, Any]]]] = {
    "placement": _placement,
    "headroom": _headroom,
    "retry": _retry,
    "billing": _billing,
}


def policy_document(policy: Policy) -> dict[str, Any]:
    """Write every key of a policy; reading it over any base gives an equal Policy."""
    seconds, ratio = q.milli_written, q.micro_written
    order, preemption, silence, retry = policy.order, policy.preemption, policy.silence, policy.retry
    return {
        "name": policy.name,
        "placement": {
            "use": policy.placement.use,
            "weights": {name: ratio(weight) for name, weight in policy.placement.weights_ppm},
        },
        "order": {
            "ageing_s": seconds(order.ageing_ms),
            "backfill": order.backfill,
            "starvation_s": seconds(order.starvation_ms),
        },
        "fairness": {
            "half_life_s": seconds(policy.fairness.half_life_ms),
            "entry_penalty": policy.fairness.entry_penalty,
        },
        "preemption": {
            "by_priority": preemption.by_priority,
            "reclaim": preemption.reclaim,
            "minimum_run_s": seconds(preemption.minimum_run_ms),
            "per_minute_max": preemption.per_minute_max,
            "on_shrink": preemption.on_shrink,
        },
        "crossing": {"margin": ratio(policy.crossing.margin_ppm), "keep_copy": policy.crossing.keep_copy},
        "headroom": {
            "node": {"cpu": _room(policy.headroom.node_cpu), "devices": _room(policy.headroom.node_devices)},
            "site": {"devices": _room(policy.headroom.site_devices)},
        },
        "silence": {
            "tolerance_s": seconds(silence.tolerance_ms),
            "hold_off_s": seconds(silence.hold_off_ms),
            "reconnect": silence.reconnect,
            "blind_max_s": seconds(silence.blind_max_ms),
        },
        "retry": {
            "backoff_s": [seconds(retry.backoff_first_ms), seconds(retry.backoff_max_ms)],
            "start_failures_quarantine": retry.start_failures_quarantine,
            "avoid_failed_node": retry.avoid_failed_node,
            "memory_growth": ratio(retry.memory_growth_ppm),
        },
        "checkpoint": {
            "copies": policy.checkpoint.copies,
            "alert_after_s": seconds(policy.checkpoint.alert_after_ms),
        },
        "moves": {"on": policy.moves.on, "cost_s": seconds(policy.moves.cost_ms)},
        "billing": {
            "currency": policy.billing.currency,
            "charge": {kind: ratio(getattr(policy.billing.charge_ppm, kind)) for kind in _CHARGES},
        },
    }


def _room(room: Room) -> int | str:
    if room.share_ppm:
        return f"{decimal_text(room.share_ppm, MICRO // 100)}%"
    return q.milli_written(room.amount_milli)


def policy_hash(policy: Policy) -> str:
    """Name a policy by what it says: SHA-256 of its full document, in hexadecimal."""
    return hashlib.sha256(canonical_body(policy_document(policy))).hexdigest()
