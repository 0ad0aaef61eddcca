"""How long silence is borne: the settings' numbers, and over them those that the policy in force names."""

from __future__ import annotations

from dataclasses import replace

from evenflow.core.placement.policy import SilenceRule
from evenflow.core.probing.liveness import Tolerance
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.documents.policy import parse_policy
from evenflow.inventory.settings import InventorySettings
from evenflow.platform.broker.codec import Received


class Silence:
    """The limits in force. A number that the newest policy document does not name is that of the settings."""

    def __init__(self, settings: InventorySettings) -> None:
        self._suspect_ms = settings.suspect_after_ms
        self._settings = SilenceRule(
            tolerance_ms=settings.silence_tolerance_ms,
            hold_off_ms=settings.hold_off_ms,
            blind_max_ms=settings.blind_max_ms,
        )
        self._rule = self._settings

    def apply(self, received: Received) -> None:
        """Take a policy document, or its removal. Raises FieldRefused for one that can't be read."""
        if received.key != "policy/default":
            return
        body = received.body
        if not isinstance(body, DocumentPublished):
            self._rule = self._settings
            return
        told = parse_policy(body.document).silence
        named = body.document.get("silence", {})
        changes = {f"{key}_ms": getattr(told, f"{key}_ms") for key in _KEYS if f"{key}_s" in named}
        self._rule = replace(self._settings, **changes)

    @property
    def hold_off_ms(self) -> int:
        """How long a node that came back takes no new work."""
        return self._rule.hold_off_ms

    @property
    def tolerance(self) -> Tolerance:
        """Limits for the judgement."""
        rule = self._rule
        # Suspicion well before loss: else the first is lost before it shows that all fell silent together.
        suspect_ms = min(self._suspect_ms, rule.tolerance_ms // 2)
        return Tolerance(suspect_ms, rule.tolerance_ms, rule.blind_max_ms)


_KEYS = ("tolerance", "hold_off", "blind_max")
