"""Power over records between their sender and the log."""

from __future__ import annotations

from evenflow.sim.stage import DeliveryRule
from evenflow.sim.world.records.interception import Interception


class DeliveryPowers:
    """Adds rules to the interception."""

    def __init__(self, interception: Interception) -> None:
        self._interception = interception

    async def rule(self, rule: DeliveryRule) -> None:
        """From now on."""
        self._interception.add(rule)

    def end_all(self) -> None:
        """No rule any more; what was kept back is released."""
        self._interception.end_all()
