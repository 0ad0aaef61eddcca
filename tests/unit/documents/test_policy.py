"""The policy document: defaults, merging, exact numbers, identity."""

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.core.placement.policy import DEFAULT_POLICY, Room
from evenflow.events.documents.policy import parse_policy, policy_document, policy_hash, policy_problems

#: The default as the documentation prints it.
PRINTED = {
    "name": "default",
    "order": {"ageing_s": 60, "backfill": "easy", "starvation_s": 60},
    "fairness": {"half_life_s": 604800, "entry_penalty": True},
    "preemption": {"by_priority": False, "reclaim": True, "minimum_run_s": 0, "per_minute_max": 60, "on_shrink": False},
    "crossing": {"margin": 0.1, "keep_copy": True},
    "headroom": {"node": {"cpu": 0, "devices": 0}, "site": {"devices": 0}},
    "silence": {"tolerance_s": 30, "hold_off_s": 60, "reconnect": "adopt", "blind_max_s": 900},
    "retry": {"backoff_s": [5, 300], "start_failures_quarantine": 3, "avoid_failed_node": True, "memory_growth": 2},
    "checkpoint": {"copies": 1, "alert_after_s": 600},
    "moves": {"on": False, "cost_s": 10},
    "billing": {
        "currency": "CNY",
        "charge": {"work": 1, "transfer": 1, "wait": 0, "start": 0, "stop": 0, "failed_start": 0, "lost": 0},
    },
}


def test_the_default_is_what_the_documentation_prints():
    """Reading the printed default over the default changes nothing."""
    assert parse_policy(PRINTED) == DEFAULT_POLICY
    assert parse_policy({}) == DEFAULT_POLICY


def test_numbers_are_kept_in_exact_units():
    """A tenth is 100,000 millionths, never the nearest binary fraction."""
    assert DEFAULT_POLICY.crossing.margin_ppm == 100_000
    assert DEFAULT_POLICY.silence.tolerance_ms == 30_000
    assert DEFAULT_POLICY.billing.charge_ppm.work == 1_000_000


def test_a_document_changes_only_what_it_says():
    """Sections, weights and charges are merged key by key."""
    base = parse_policy({"name": "night", "placement": {"weights": {"price": 2}}, "moves": {"on": True}})
    policy = parse_policy(
        {
            "placement": {"weights": {"fragmentation": "0.5"}},
            "retry": {"backoff_s": [1, 2.5]},
            "billing": {"charge": {"wait": 0.25}},
            "headroom": {"node": {"cpu": "10%", "devices": 1}},
        },
        base,
    )
    assert policy.name == "night"
    assert dict(policy.placement.weights_ppm)["price"] == 2_000_000
    assert dict(policy.placement.weights_ppm)["fragmentation"] == 500_000
    assert (policy.retry.backoff_first_ms, policy.retry.backoff_max_ms) == (1_000, 2_500)
    assert policy.retry.start_failures_quarantine == 3
    assert (policy.billing.charge_ppm.wait, policy.billing.charge_ppm.work) == (250_000, 1_000_000)
    assert (policy.headroom.node_cpu, policy.headroom.node_devices) == (Room(share_ppm=100_000), Room(1_000))
    assert policy.moves.on


def test_writing_and_reading_give_an_equal_policy_whatever_the_base():
    """The full document says every key."""
    policy = parse_policy(
        {
            "name": "night",
            "crossing": {"margin": "0.123456"},
            "headroom": {"site": {"devices": "12.5%"}, "node": {"cpu": "0.5"}},
            "placement": {"use": "best-fit", "weights": {"speed": 0}},
            "order": {"ageing_s": 0.001},
        }
    )
    other = parse_policy({"name": "other", "silence": {"tolerance_s": 5}, "headroom": {"node": {"devices": "1%"}}})
    written = policy_document(policy)
    assert parse_policy(written) == policy
    assert parse_policy(written, parse_policy(policy_document(policy), other)) == policy


def test_a_policy_is_named_by_what_it_says():
    """Equal policies have one hash however they were written; every change gives another."""
    assert policy_hash(parse_policy({"crossing": {"margin": "0.10"}})) == policy_hash(DEFAULT_POLICY)
    assert policy_hash(parse_policy({"crossing": {"margin": "0.11"}})) != policy_hash(DEFAULT_POLICY)
    assert policy_hash(parse_policy({"name": "x"})) != policy_hash(DEFAULT_POLICY)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"colour": 1}, "colour"),
        ({"order": {"ageing": 1}}, "order.ageing"),
        ({"order": None}, "order"),
        ({"crossing": {"margin": float("nan")}}, "crossing.margin"),
        ({"crossing": {"margin": -0.1}}, "crossing.margin"),
        ({"crossing": {"margin": "1e-1"}}, "crossing.margin"),
        ({"retry": {"backoff_s": [5]}}, "retry.backoff_s"),
        ({"retry": {"backoff_s": [300, 5]}}, "retry.backoff_s"),
        ({"retry": {"backoff_s": [0, 5]}}, "retry.backoff_s[0]"),
        ({"retry": {"memory_growth": 0.5}}, "retry.memory_growth"),
        ({"silence": {"tolerance_s": 0}}, "silence.tolerance_s"),
        ({"silence": {"reconnect": "maybe"}}, "silence.reconnect"),
        ({"billing": {"currency": "yuan"}}, "billing.currency"),
        ({"billing": {"charge": {"tea": 1}}}, "billing.charge.tea"),
        ({"headroom": {"node": {"cpu": "101%"}}}, "headroom.node.cpu"),
        ({"headroom": {"node": {"cpu": "-1%"}}}, "headroom.node.cpu"),
        ({"headroom": {"node": {"cpu": "%"}}}, "headroom.node.cpu"),
        ({"headroom": {"site": {"cpu": 1}}}, "headroom.site.cpu"),
        ({"placement": {"weights": {"colour": 1}}}, "placement.weights.colour"),
        ({"preemption": {"per_minute_max": 1.5}}, "preemption.per_minute_max"),
    ],
)
def test_a_wrong_policy_is_refused_by_its_key(document, path):
    """Nothing in a policy is accepted and ignored."""
    with pytest.raises(FieldRefused) as caught:
        parse_policy(document)
    assert caught.value.path == path
    assert policy_problems(document)[0][0] == path
