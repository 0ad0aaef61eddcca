"""Ready and planned fields: each listed, none ignored."""

import pytest

from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.events.documents.network import parse_site
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.policy import parse_policy
from evenflow.events.documents.queue import parse_queue
from evenflow.events.documents.readiness import (
    PLANNED,
    documented_fields,
    planned_in_node,
    planned_in_policy,
    planned_in_queue,
    planned_in_site,
    planned_in_task,
)
from evenflow.events.documents.task_specification import parse_task


def test_every_planned_field_is_a_field():
    """A line for a field that does not exist would hide one that does."""
    listed = documented_fields()
    for kind, planned in PLANNED.items():
        assert planned <= listed[kind].keys()
        assert {path for path, state in listed[kind].items() if state == "planned"} == planned


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("kind", "service", "kind"),
        ("min_members", 1, "min_members"),
        ("groups", [{"size": 1, "level": "node"}], "groups"),
        ("budget", "7.00", "budget"),
        ("latency", {"near": "east"}, "latency"),
        ("image", "trainer@sha256:0f3a", "image"),
        ("secrets", {"TOKEN": "vault/token"}, "secrets"),
        ("members", [{}], "members[].resources"),
    ],
)
def test_each_planned_field_of_a_task_is_seen(field, value, path):
    """The door can name it."""
    assert planned_in_task(parse_task({"id": "t", field: value})) == [path]
    assert planned_in_task(parse_task({"id": "t"})) == []


def test_planned_fields_of_other_documents_are_seen():
    """Slices of a node, guarantees of a queue, headroom of a policy."""
    devices = {"model": "t4", "slices": [{"profile": "a", "count": 1}]}
    assert planned_in_node(parse_node({"id": "n", "site": "s", "devices": devices})) == ["devices.slices"]
    assert planned_in_node(parse_node({"id": "n", "site": "s"})) == []
    assert planned_in_node(parse_node({"id": "n", "site": "s", "class": "core"})) == ["class"]
    assert planned_in_site(parse_site({"id": "s", "store": True})) == []
    assert planned_in_site(parse_site({"id": "s", "store": False})) == ["store"]
    assert planned_in_queue(parse_queue({"id": "root"})) == []
    assert planned_in_queue(parse_queue({"id": "q", "limit": {"cpu": 1}})) == []
    queue = parse_queue({"id": "q", "parent": "p", "weight": 2, "guaranteed": {"cpu": 1}, "budget": "1"})
    assert planned_in_queue(queue) == ["budget", "guaranteed", "parent", "weight"]
    assert planned_in_policy(DEFAULT_POLICY) == []
    policy = parse_policy({"headroom": {"node": {"cpu": "10%"}}, "order": {"backfill": "off"}, "moves": {"on": True}})
    assert planned_in_policy(policy) == ["headroom.node", "moves.on", "order.backfill"]


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("placement", "use", "other"),
        ("placement", "weights", {"price": 2}),
        ("order", "ageing_s", 90),
        ("order", "starvation_s", 90),
        ("fairness", "half_life_s", 90),
        ("fairness", "entry_penalty", False),
        ("retry", "memory_growth", 3),
        ("checkpoint", "copies", 2),
        ("checkpoint", "alert_after_s", 90),
    ],
)
def test_each_planned_key_of_a_policy_is_seen_when_it_leaves_its_default(section, key, value):
    """No number of the policy is taken and then read by nobody."""
    assert planned_in_policy(parse_policy({section: {key: value}})) == [f"{section}.{key}"]
