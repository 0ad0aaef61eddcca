"""Who reads which partition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.platform.broker.embedded.assignors import ASSIGNORS, assign_range, assign_round_robin, assign_sticky

_groups = st.dictionaries(
    st.sampled_from("abcdef"), st.sets(st.sampled_from(["t1", "t2", "t3"])).map(sorted), min_size=1
)
_counts = st.fixed_dictionaries({name: st.integers(1, 9) for name in ("t1", "t2", "t3")})


@settings(max_examples=40)
@given(_groups, _counts)
def test_every_partition_has_exactly_one_reader_who_wants_it(subscriptions, counts):
    """Proves for each assignor that nothing is read twice, nothing left out, nothing given to the wrong member."""
    for assign in ASSIGNORS.values():
        assignment = assign(subscriptions, counts, {})
        given_out = sorted(key for keys in assignment.values() for key in keys)
        wanted = {topic for topics in subscriptions.values() for topic in topics}
        assert given_out == sorted((topic, number) for topic in wanted for number in range(counts[topic]))
        assert all(key.topic in subscriptions[member] for member, keys in assignment.items() for key in keys)


@settings(max_examples=40)
@given(_groups, _groups, _counts)
def test_sticky_moves_no_more_than_balance_asks_for(before, after, counts):
    """Proves that a member keeps its partitions unless another one has two fewer and could take one."""
    held = assign_sticky(before, counts, {})
    assignment = assign_sticky(after, counts, held)
    for member, topics in after.items():
        for other in after:
            can_take = [key for key in assignment[member] if key.topic in after[other]]
            assert len(assignment[member]) - len(assignment[other]) < 2 or not can_take
        if before == after:
            assert assignment[member] == held[member], topics


def test_range_and_round_robin_deal_as_kafka_does():
    """Proves the order of dealing on a small example."""
    both = {"a": ["t"], "b": ["t"]}
    assert [key.partition for key in assign_range(both, {"t": 5}, {})["a"]] == [0, 1, 2]
    assert [key.partition for key in assign_round_robin(both, {"t": 5}, {})["a"]] == [0, 2, 4]


def test_the_holder_of_one_partition_keeps_it_whoever_joins():
    """Proves the leader's seat."""
    held = assign_sticky({"m": ["seat"]}, {"seat": 1}, {})
    members = {"a": ["seat"], "m": ["seat"], "z": ["seat"]}
    assert [m for m, keys in assign_sticky(members, {"seat": 1}, held).items() if keys] == ["m"]
