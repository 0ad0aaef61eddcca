"""Power over records between their sender and the log, and between the gateway and the agents."""

from __future__ import annotations

from evenflow.sim.stage import DeliveryRule
from evenflow.sim.world.paths.downlink import TOPICS, Downlink
from evenflow.sim.world.records.interception import Interception


class DeliveryPowers:
    """Adds rules where the topic's records can be met."""

    def __init__(self, interception: Interception, downlink: Downlink) -> None:
        self._interception = interception
        self._downlink = downlink

    async def rule(self, rule: DeliveryRule) -> None:
        """From now on."""
        if rule.topic in TOPICS:
            self._downlink.add(rule)
        else:
            self._interception.add(rule)

    def end_all(self) -> None:
        """No rule any more; what was kept back is released."""
        self._interception.end_all()
        self._downlink.end_all()
