"""What each record's key is made of: the one place. Keys decide the partition, so they never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from evenflow.core.lifecycle.event_types import EventType as T
from evenflow.events.contract import Contract
from evenflow.events.streams import STREAMS

_BY_SHAPE: Final[dict[str, Callable[[Any], str]]] = {
    "tenant/task": lambda body: f"{body.tenant}/{body.task}",
    "node/tenant/task/attempt/member": lambda body: (
        f"{body.place.node}/{body.tenant}/{body.task}/{body.attempt}/{body.place.member}"
    ),
    "node": lambda body: body.node,
    "from/to": lambda body: f"{body.from_site}/{body.to_site}",
    "dataset": lambda body: body.dataset,
    "transfer": lambda body: body.transfer,
    "queue": lambda body: body.queue,
    "kind/name": lambda body: f"{body.kind}/{body.name}",
    "pool": lambda body: body.pool,
    "name/subject": lambda body: f"{body.name}/{body.subject}",
    "actor": lambda body: body.actor,
}

#: Types whose key differs from their stream's shape; None = the writer names it.
_BY_TYPE: Final[dict[str, Callable[[Any], str | None]]] = {
    T.TASK_SUBMITTED: lambda _: None,
    T.STATE_RECORDED: lambda _: None,
    T.RECORD_PARKED: lambda _: None,
    T.OBSERVER_BEACON: lambda body: f"observer/{body.observer}",
    T.NODE_REFUSED: lambda body: f"refused/{body.node}",
    T.NODE_CORDON_REQUESTED: lambda body: body.node,
    T.NODE_UNCORDON_REQUESTED: lambda body: body.node,
    T.NODE_DRAIN_REQUESTED: lambda body: body.node,
    T.NODE_REVOKE_REQUESTED: lambda body: body.node,
    T.LINK_REHEARSE_REQUESTED: lambda body: f"{body.from_site}/{body.to_site}",
    T.DATASET_ADD_REQUESTED: lambda body: body.dataset,
    T.DATASET_DROP_REQUESTED: lambda body: body.dataset,
    T.CHARGE_CORRECT_REQUESTED: lambda body: body.entry,
}

_KEYS: Final[dict[str, Callable[[Any], str | None]]] = {
    **{name: _BY_SHAPE[stream.key] for stream in STREAMS for name in stream.carries if stream.key in _BY_SHAPE},
    **_BY_TYPE,
}


def key_of(body: Contract) -> str | None:
    """The key this body must travel under; None when its writer names it."""
    return _KEYS[body.TYPE](body)
