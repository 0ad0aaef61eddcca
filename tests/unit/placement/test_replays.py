"""Replay windows of a decider: a backlog is no replay, and what comes twice is never new twice."""

from __future__ import annotations

from evenflow.core.probing.sequence import Freshness
from evenflow.placement.deciding.replays import NODES_MAX, SESSIONS_PER_NODE_MAX, Replays

PARTITIONS = 16


def backlog(count: int) -> list[tuple[int, int]]:
    """(partition, sequence) of one session's receipts as a decider reads them after a pause: partition by partition."""
    return sorted((sequence * 7 % PARTITIONS, sequence) for sequence in range(1, count + 1))


def test_a_backlog_of_any_length_is_heard_whole() -> None:
    """A partition read last holds numbers far below those of the first: they are new all the same."""
    replays = Replays(1_024)
    heard = [replays.hear("n1", "s", partition, sequence, b"x") for partition, sequence in backlog(50_000)]
    assert set(heard) == {Freshness.FRESH}


def test_what_is_delivered_again_is_never_new_again() -> None:
    """Known ones are repeats; those that the window let go are refused."""
    replays = Replays(64)
    records = backlog(5_000)
    for partition, sequence in records:
        replays.hear("n1", "s", partition, sequence, b"x")
    again = {replays.hear("n1", "s", partition, sequence, b"x") for partition, sequence in records}
    assert again == {Freshness.REPEAT, Freshness.TOO_OLD}


def test_one_number_with_two_contents_is_a_conflict_and_sessions_do_not_mix() -> None:
    """Another session or node has numbers of its own."""
    replays = Replays(8)
    assert replays.hear("n1", "s", 0, 1, b"x") is Freshness.FRESH
    assert replays.hear("n1", "s", 0, 1, b"y") is Freshness.CONFLICT
    assert replays.hear("n1", "t", 0, 1, b"y") is Freshness.FRESH
    assert replays.hear("n2", "s", 0, 1, b"y") is Freshness.FRESH


def test_the_number_of_nodes_is_bounded() -> None:
    """Those that were silent for longest are forgotten first."""
    replays = Replays(1)
    for number in range(NODES_MAX + 10):
        replays.hear(f"n{number}", "s", 0, 1, b"x")
    assert replays.window_count == NODES_MAX
    assert replays.hear("n0", "s", 0, 1, b"x") is Freshness.FRESH
    assert replays.hear(f"n{NODES_MAX}", "s", 0, 1, b"x") is Freshness.REPEAT


def test_a_node_that_opens_sessions_for_ever_takes_no_more_memory() -> None:
    """Found: agents that lost their session left windows of it for every partition, for good."""
    replays = Replays(8)
    for number in range(1_000):
        for partition in range(PARTITIONS):
            replays.hear("n1", f"s{number}", partition, 1, b"x")
    assert replays.window_count == SESSIONS_PER_NODE_MAX * PARTITIONS
    assert replays.hear("n1", "s998", 3, 1, b"x") is Freshness.REPEAT
