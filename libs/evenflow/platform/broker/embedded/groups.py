"""Consumer groups: joining, leaving, eager rebalances, generations, eviction.

Kafka's eager protocol: when the membership changes, every member is asked to give up its partitions and join again.
When all have, or the slow ones were put out, the generation goes up and partitions are dealt out anew, each read from
its committed offset. Members are always visited in the order in which they joined. Callbacks run in the context of the
member's own process: a dead process answers nothing and is put out when its session ends, a paused one answers late.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from aiokafka import TopicPartition
from aiokafka.errors import InconsistentGroupProtocolError

from evenflow.platform.broker.embedded.assignors import ASSIGNORS

if TYPE_CHECKING:
    import asyncio

    from evenflow.platform.broker.embedded.clients.membership import Membership
    from evenflow.platform.broker.embedded.log import EmbeddedLog


class Group:
    """One group. `awaited` are the members that must still join again before the rebalance completes."""

    __slots__ = ("awaited", "deadline", "generation", "held", "members", "name", "rebalancing", "strategy")

    def __init__(self, name: str, strategy: str) -> None:
        self.name = name
        self.strategy = strategy
        self.generation = 0
        self.members: dict[str, Membership] = {}
        self.held: dict[str, list[TopicPartition]] = {}
        self.awaited: dict[str, Membership] = {}
        self.rebalancing = False
        self.deadline: asyncio.TimerHandle | None = None


class Groups:
    """The group coordinator of one log."""

    def __init__(self, log: EmbeddedLog) -> None:
        self._log = log
        self._groups: dict[str, Group] = {}
        self._joins = 0

    def new_member_id(self, client_id: str) -> str:
        """A member id; they sort in the order of joining."""
        self._joins += 1
        return f"{client_id}-{self._joins:08d}"

    def group(self, name: str) -> Group | None:
        """A group, if it ever had a member."""
        return self._groups.get(name)

    def names(self) -> list[str]:
        """Groups that ever had a member, in order of their first."""
        return list(self._groups)

    def generation(self, name: str) -> int:
        """The group's generation, 0 before its first."""
        group = self._groups.get(name)
        return 0 if group is None else group.generation

    def is_member(self, consumer: Membership) -> bool:
        """Whether the log counts this consumer in."""
        group = self._groups.get(consumer.group_id or "")
        return group is not None and group.members.get(consumer.member_id) is consumer

    def is_current(self, consumer: Membership) -> bool:
        """Whether the consumer is a member and knows the group's generation: only then may it commit."""
        return self.is_member(consumer) and consumer.generation == self.generation(consumer.group_id or "")

    def is_settled(self, consumer: Membership) -> bool:
        """Whether the consumer is current and no rebalance waits for it."""
        group = self._groups.get(consumer.group_id or "")
        return group is not None and self.is_current(consumer) and consumer.member_id not in group.awaited

    def has_members(self, name: str) -> bool:
        """Whether anybody is in the group."""
        group = self._groups.get(name)
        return group is not None and bool(group.members)

    def join(self, consumer: Membership) -> None:
        """Add a member and rebalance. Raises InconsistentGroupProtocolError for another strategy than the group's."""
        name = consumer.group_id or ""
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name, consumer.strategy)
        if not group.members:
            group.strategy = consumer.strategy
        elif group.strategy != consumer.strategy:
            message = (
                f"group {name} deals its partitions out by {group.strategy}; a {consumer.strategy} member must wait "
                "until the others have left"
            )
            raise InconsistentGroupProtocolError(message)
        group.members[consumer.member_id] = consumer
        self._rebalance(group)

    def leave(self, consumer: Membership) -> None:
        """Remove a member that says goodbye, or that was silent for its session; the others rebalance."""
        group = self._groups.get(consumer.group_id or "")
        if group is None or group.members.get(consumer.member_id) is not consumer:
            return
        del group.members[consumer.member_id]
        group.held.pop(consumer.member_id, None)
        group.awaited.pop(consumer.member_id, None)
        self._rebalance(group)

    def topics_added(self, names: Iterable[str]) -> None:
        """New topics: groups that subscribe to them, by pattern, rebalance."""
        added = list(names)
        for group in self._groups.values():
            if any(member.wants(name) for member in group.members.values() for name in added):
                self._rebalance(group)

    def rebalance(self, name: str) -> None:
        """Make a group deal out its partitions again."""
        group = self._groups.get(name)
        if group is not None and group.members:
            self._rebalance(group)

    def _rebalance(self, group: Group) -> None:
        if not group.rebalancing:
            group.rebalancing = True
            group.awaited = {
                member_id: member for member_id, member in group.members.items() if member_id in group.held
            }
            for member in group.awaited.values():
                self._log.loop.call_soon(member.begin_rejoin, context=member.context)
            slowest = max((member.session_timeout_s for member in group.awaited.values()), default=0.0)
            group.deadline = self._log.loop.call_later(slowest, self._put_out, group, context=self._log.world)
        self._complete_soon(group)

    def rejoined(self, consumer: Membership) -> None:
        """A member has given up its partitions and joined again."""
        group = self._groups.get(consumer.group_id or "")
        if group is not None and group.awaited.get(consumer.member_id) is consumer:
            del group.awaited[consumer.member_id]
            self._complete_soon(group)

    def _put_out(self, group: Group) -> None:
        """Members that did not join again in time are out."""
        for member_id in list(group.awaited):
            del group.members[member_id]
            group.held.pop(member_id, None)
        group.awaited = {}
        self._complete(group)

    def _complete_soon(self, group: Group) -> None:
        if group.rebalancing and not group.awaited:
            self._log.loop.call_soon(self._complete, group, context=self._log.world)

    def _complete(self, group: Group) -> None:
        if not group.rebalancing or group.awaited:
            return
        group.rebalancing = False
        if group.deadline is not None:
            group.deadline.cancel()
            group.deadline = None
        group.generation += 1
        subscriptions = {
            member_id: [name for name in self._log.topics if member.wants(name)]
            for member_id, member in group.members.items()
        }
        counts = {name: len(topic.partitions) for name, topic in self._log.topics.items()}
        group.held = dict(ASSIGNORS[group.strategy](subscriptions, counts, group.held))
        for member_id, member in group.members.items():
            given = list(group.held[member_id])
            self._log.loop.call_soon(member.take_assignment, group.generation, given, context=member.context)
