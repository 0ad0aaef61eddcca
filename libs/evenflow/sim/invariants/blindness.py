"""INV12 doubt: nobody is declared lost while the whole pool is silent together, nor before the tolerance is over.

Told from the log: when each node was last heard there, and whether the observer itself was awake all the time, which
its own beacons say. Then every node fell silent at once, and the fault is the observer's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.documents.policy import parse_policy
from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen

#: Losses so close together are one judgement.
ONE_JUDGEMENT_MS: Final = 1_000
_LIFE_SIGNS: Final = (EventType.NODE_ANNOUNCED, EventType.NODE_HEARTBEAT)
_STATUS: Final = (EventType.NODE_REGISTERED, EventType.NODE_CHANGED)


class Blindness:
    """Checked whenever a node is declared lost. Times are those of the world's settings."""

    name = "INV12"

    def __init__(self, tolerance_ms: int, blind_max_ms: int) -> None:
        self._tolerance_ms = tolerance_ms
        self._blind_max_ms = blind_max_ms
        self._heard_ms: dict[str, int] = {}
        #: When a node's newest session said something new; only that counts as life.
        self._alive_ms: dict[str, int] = {}
        self._spoken: dict[str, tuple[str, int]] = {}
        self._lost_ms: dict[str, int] = {}
        self._beacons_ms: list[int] = []

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """Somebody else was heard, or the observer slept, or this is no loss."""
        if record.type in _LIFE_SIGNS:
            self._heard_ms[str(record.body.get("node", ""))] = model.now_ms
            self._lives(model, record)
        elif record.type == EventType.OBSERVER_BEACON:
            self._beacons_ms.append(model.now_ms)
        elif record.type in _STATUS:
            yield from self._status(model, record)

    def _lives(self, model: Observation, record: Seen) -> None:
        """Forged, replayed and overtaken records, and those of an earlier session, are no sign of life."""
        node, session, sequence = str(record.body.get("node", "")), record.header("session"), record.header("sequence")
        if not sequence.isdigit() or record.id in model.forged:
            return
        announced = record.type == EventType.NODE_ANNOUNCED
        known, newest = self._spoken.get(node, ("", 0))
        if announced or (session == known and int(sequence) > newest):
            self._spoken[node] = (session, int(sequence))
            self._alive_ms[node] = model.now_ms

    def _status(self, model: Observation, record: Seen) -> Iterator[str]:
        node = str(record.body.get("node", ""))
        if record.body.get("revoked"):
            self._heard_ms.pop(node, None)
        if record.body.get("reach") != "lost":
            self._lost_ms.pop(node, None)
        elif node not in self._lost_ms:
            self._lost_ms[node] = model.now_ms
            yield from self._early(model, node)
            yield from self._doubtful(model, node)

    def _early(self, model: Observation, node: str) -> Iterator[str]:
        """A quarter of the tolerance is left for what the observer has not read yet."""
        now_ms, tolerance_ms = model.now_ms, _tolerance_ms(model, self._tolerance_ms)
        alive_ms = self._alive_ms.get(node)
        if alive_ms is None or now_ms - alive_ms > tolerance_ms * 3 // 4 or now_ms - alive_ms < tolerance_ms // 4:
            return
        if self._awake(alive_ms, now_ms):
            yield f"{node} was declared lost {now_ms - alive_ms} ms after it was heard, {tolerance_ms} ms are borne"

    def _doubtful(self, model: Observation, node: str) -> Iterator[str]:
        now_ms = model.now_ms
        believed = [
            heard_ms
            for name, heard_ms in self._heard_ms.items()
            if now_ms - self._lost_ms.get(name, now_ms) <= ONE_JUDGEMENT_MS
        ]
        if len(believed) < 2:
            return  # one node alone is no pool
        first_ms, last_ms = min(believed), max(believed)
        together = last_ms - first_ms <= self._tolerance_ms // 2
        silent = self._tolerance_ms <= now_ms - last_ms and now_ms - first_ms < self._blind_max_ms
        if together and silent and self._awake(last_ms, now_ms):
            yield f"{node} was declared lost while all {len(believed)} nodes had fallen silent together"

    def _awake(self, since_ms: int, until_ms: int) -> bool:
        """Whether the observer's own beacons came all the while."""
        moments = [since_ms, *(at_ms for at_ms in self._beacons_ms if since_ms <= at_ms <= until_ms), until_ms]
        gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
        return max(gaps) <= self._tolerance_ms // 2

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """Nothing more."""
        del model, settled
        yield from ()


def _tolerance_ms(model: Observation, of_settings_ms: int) -> int:
    """The tolerance in force: the policy's where it names one."""
    if "tolerance_s" not in (model.policy.get("silence") or {}):
        return of_settings_ms
    return parse_policy(model.policy).silence.tolerance_ms
