"""The fold of usage and charges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.sim.observation.entities import shown_id
from evenflow.sim.observation.record import Seen

if TYPE_CHECKING:
    from evenflow.sim.observation.model import Observation


def _usage(model: Observation, record: Seen) -> None:
    model.usage_entries[str(record.body.get("entry", ""))] = record.body


def _charge(model: Observation, record: Seen) -> None:
    body = dict(record.body)
    shown = shown_id(str(body.get("tenant", "default")), str(body.get("task", "")))
    model.ledger.append({"t": record.t_ms / 1000, "type": record.type, "task_shown": shown, **body})


FOLDS: Final[dict[str, Callable[[Observation, Seen], None]]] = {
    EventType.USAGE_MEASURED: _usage,
    EventType.CHARGE_RECORDED: _charge,
    EventType.CHARGE_CORRECTED: _charge,
}
