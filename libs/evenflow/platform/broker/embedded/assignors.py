"""Who reads which partition: range, round robin and sticky, each a pure function of the group in joining order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from aiokafka import TopicPartition

Subscriptions = Mapping[str, Sequence[str]]
"""Topics by member id, in the order of joining."""
Assignment = dict[str, list[TopicPartition]]
Assignor = Callable[[Subscriptions, Mapping[str, int], Mapping[str, Sequence[TopicPartition]]], Assignment]
"""(subscriptions, partition count by topic, partitions held before by member id) → partitions by member id."""


def assign_range(
    subscriptions: Subscriptions, counts: Mapping[str, int], _held: Mapping[str, Sequence[TopicPartition]]
) -> Assignment:
    """Consecutive partitions of each topic; earlier members get one more when it doesn't divide."""
    assignment: Assignment = {member: [] for member in subscriptions}
    for topic in sorted(counts):
        members = [member for member, topics in subscriptions.items() if topic in topics]
        if not members:
            continue
        share, more = divmod(counts[topic], len(members))
        first = 0
        for place, member in enumerate(members):
            size = share + (1 if place < more else 0)
            assignment[member] += [TopicPartition(topic, n) for n in range(first, first + size)]
            first += size
    return assignment


def assign_round_robin(
    subscriptions: Subscriptions, counts: Mapping[str, int], _held: Mapping[str, Sequence[TopicPartition]]
) -> Assignment:
    """All partitions of all topics dealt out in turn; a member that doesn't read a topic is passed over."""
    assignment: Assignment = {member: [] for member in subscriptions}
    members = list(subscriptions)
    turn = 0
    for topic in sorted(counts):
        if not any(topic in topics for topics in subscriptions.values()):
            continue
        for number in range(counts[topic]):
            while topic not in subscriptions[members[turn % len(members)]]:
                turn += 1
            assignment[members[turn % len(members)]].append(TopicPartition(topic, number))
            turn += 1
    return assignment


def assign_sticky(
    subscriptions: Subscriptions, counts: Mapping[str, int], held: Mapping[str, Sequence[TopicPartition]]
) -> Assignment:
    """Members keep what they held as far as the loads stay within one of each other; the rest goes to the least loaded.

    With a single partition its holder keeps it whoever joins: the seat of a leader.
    """
    assignment: Assignment = {member: [] for member in subscriptions}
    wanted = {
        TopicPartition(topic, number): None
        for topic in sorted(counts)
        for number in range(counts[topic])
        if any(topic in topics for topics in subscriptions.values())
    }
    for member in subscriptions:
        for key in held.get(member, ()):
            if key in wanted and key.topic in subscriptions[member]:
                assignment[member].append(key)
                del wanted[key]
    for key in wanted:
        _least(assignment, subscriptions, key).append(key)
    while (move := _imbalance(assignment, subscriptions)) is not None:
        source, target, key = move
        assignment[source].remove(key)
        assignment[target].append(key)
    return {member: sorted(keys) for member, keys in assignment.items()}


def _least(assignment: Assignment, subscriptions: Subscriptions, key: TopicPartition) -> list[TopicPartition]:
    readers = [member for member, topics in subscriptions.items() if key.topic in topics]
    return assignment[min(readers, key=lambda member: len(assignment[member]))]


def _imbalance(assignment: Assignment, subscriptions: Subscriptions) -> tuple[str, str, TopicPartition] | None:
    """A partition to move from the most to a less loaded member, while their loads differ by two or more."""
    for source in sorted(assignment, key=lambda member: -len(assignment[member])):
        for target in sorted(assignment, key=lambda member: len(assignment[member])):
            if len(assignment[source]) - len(assignment[target]) < 2:
                break
            for key in reversed(assignment[source]):
                if key.topic in subscriptions[target]:
                    return source, target, key
    return None


ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
}
