"""What went on: placement's rounds, alerts that are open, alerts that were."""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from evenflow.events.contracts.placement import RoundCompleted
from evenflow.events.contracts.platform import AlertAcknowledged, AlertBody, AlertCleared, AlertRaised
from evenflow.platform.broker.codec import Received

ALERTS_KEPT: Final = 2_000
OPEN_MAX: Final = 10_000


class Activity:
    """Rounds and alerts."""

    def __init__(self, round_max: int) -> None:
        self.rounds: deque[dict[str, Any]] = deque(maxlen=round_max)
        self.round_count = 0
        self.open: dict[str, dict[str, Any]] = {}
        self.past: deque[dict[str, Any]] = deque(maxlen=ALERTS_KEPT)

    def round(self, received: Received) -> None:
        """A round that placement committed."""
        if isinstance(received.body, RoundCompleted):
            self.round_count += 1
            self.rounds.append({**received.body.model_dump(mode="json"), "at_ms": received.timestamp_ms})

    def alert(self, received: Received) -> None:
        """An alert raised, acknowledged or cleared."""
        body = received.body
        if not isinstance(body, AlertBody):
            return
        key = f"{body.name}/{body.subject}"
        if isinstance(body, AlertRaised):
            if key not in self.open and len(self.open) < OPEN_MAX:
                self.open[key] = {
                    "name": str(body.name),
                    "subject": body.subject,
                    "message": body.message,
                    "raised_ms": body.at_ms,
                    "acknowledged_by": "",
                }
        elif isinstance(body, AlertAcknowledged):
            if key in self.open:
                self.open[key]["acknowledged_by"] = body.who
        elif isinstance(body, AlertCleared) and (row := self.open.pop(key, None)) is not None:
            self.past.append({**row, "cleared_ms": body.at_ms})

    def alerts(self) -> list[dict[str, Any]]:
        """Open alerts, oldest first."""
        return sorted(self.open.values(), key=lambda row: (row["raised_ms"], row["name"], row["subject"]))
