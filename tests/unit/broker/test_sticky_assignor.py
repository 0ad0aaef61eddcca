"""Who keeps a partition when a member comes back that stood still for longer than its session."""

from __future__ import annotations

from typing import Any

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from evenflow.platform.broker.kafka import OwnStickyAssignor

TOPIC = "seat"


class OnePartition(ClusterMetadata):
    """A cluster with one topic of one partition."""

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return {0}

    def topics(self, **_: Any) -> set[str]:
        return {TOPIC}


def member(generation: int) -> type[OwnStickyAssignor]:
    """A member that was given the seat in that generation of the group."""
    made: type[OwnStickyAssignor] = type("Member", (OwnStickyAssignor,), {"generation_now": lambda: generation})
    made.on_assignment(ConsumerProtocolMemberAssignment(1, [(TOPIC, [0])], b""))
    return made


def test_the_newer_claim_wins_whoever_is_asked_first() -> None:
    """Both say that they hold the seat; the one that was given it later keeps it."""
    stood_still, leads = member(3), member(7)
    for names in (("a", "b"), ("b", "a")):
        claims: dict[str, Any] = dict(zip(names, (one.metadata([TOPIC]) for one in (stood_still, leads)), strict=True))
        for order in (sorted(claims), sorted(claims, reverse=True)):
            given = leads.assign(OnePartition(), {name: claims[name] for name in order})
            assert given[names[1]].partitions(), (names, order)
            assert not given[names[0]].partitions()
