"""The list of permissions against what the product does: nothing more is allowed, nothing that is needed is missing."""

from __future__ import annotations

import pytest

from evenflow.billing.ledger import GROUP as LEDGER_GROUP
from evenflow.console.warden import GROUP as WARDEN_GROUP
from evenflow.console.warden import WATCHED
from evenflow.events.streams import STREAMS, dead_letters_of
from evenflow.hosting.registry import SERVICES as KINDS
from evenflow.platform.broker.subscriptions.subscription import group_of
from evenflow.platform.security.permissions import (
    SERVICES,
    Operation,
    Permission,
    Resource,
    may,
    permissions,
    user_of,
    users,
)

LIST = permissions()
ALLOWED = {  # by hand: who may write what
    "evenflow.tasks.v1": {"producers", "console"},
    "evenflow.requests.v1": {"console"},
    "evenflow.assignments.v1": {"placement"},
    "evenflow.dispatch.v1": {"placement"},
    "evenflow.node-requests.v1": {"link-probe"},
    "evenflow.runs.v1": {"gateway"},
    "evenflow.telemetry.v1": {"gateway", "inventory"},
    "evenflow.probes.v1": {"gateway"},
    "evenflow.transfers.v1": {"gateway"},
    "evenflow.nodes.v1": {"inventory"},
    "evenflow.links.v1": {"link-probe"},
    "evenflow.datasets.v1": {"inventory"},
    "evenflow.checkpoints.v1": {"checkpoint"},
    "evenflow.usage.v1": {"billing"},
    "evenflow.billing.v1": {"billing"},
    "evenflow.policies.v1": {"console"},
    "evenflow.rounds.v1": {"placement"},
    "evenflow.alerts.v1": {"inventory", "placement", "link-probe", "checkpoint", "gateway"},
    "evenflow.audit.v1": {"console"},
    "evenflow.placement-state.v1": {"placement"},
    "evenflow.billing-state.v1": {"billing"},
    "evenflow.placement-leader.v1": {"placement"},
}


@pytest.mark.parametrize("stream", STREAMS, ids=lambda one: one.name)
def test_who_writes_a_stream_is_as_written_down_by_hand(stream) -> None:
    """Proves that a change of the registry can't open a topic unseen."""
    writers = {user for user in users() if may(LIST, user, Operation.WRITE, stream.name)}
    assert writers == {user_of(party) for party in ALLOWED[stream.name]}


def test_every_service_has_a_user_and_no_other_does() -> None:
    """Proves that the list names the services that there are."""
    assert set(SERVICES) == set(KINDS)
    others = {"evenflow-admin", "evenflow-producers", "evenflow-subscribers", "evenflow-dashboards"}
    assert set(users()) == {user_of(name) for name in KINDS} | others


def test_whoever_reads_may_park_and_the_warden_reads_what_it_watches() -> None:
    """Proves that no service loses a record because it may not write a dead letter."""
    for stream in STREAMS:
        for name in KINDS:
            if name in stream.readers and stream.dead_letters:
                assert may(LIST, user_of(name), Operation.WRITE, dead_letters_of(stream.name))
    for stream in WATCHED:
        assert may(LIST, "evenflow-console", Operation.READ, stream.name)
        assert may(LIST, "evenflow-console", Operation.WRITE, dead_letters_of(stream.name))


def test_the_groups_that_services_form_are_theirs_alone() -> None:
    """Proves that no service can take the partitions of another."""
    groups = {
        "billing": [LEDGER_GROUP],
        "console": [WARDEN_GROUP],
        "inventory": ["inventory.seat"],
        "link-probe": ["link-probe.seat"],
        "placement": ["placement.default-leader", "placement.default-lag"],
    }
    for name in KINDS:
        for group in [*groups.get(name, []), *(group_of(name, stream) for stream in STREAMS)]:
            owners = {
                one.user
                for one in LIST
                if one.resource is Resource.GROUP and one.prefixed and group.startswith(one.name)
            }
            assert owners == {user_of(name)}, group


def test_agents_on_the_log_may_do_what_their_own_gateway_does() -> None:
    """Proves what the option adds, and that it adds nothing else."""
    more = set(permissions(agents_on_log=True)) - set(LIST)
    said = {f"evenflow.{name}.v1" for name in ("runs", "telemetry", "probes", "transfers", "alerts")}
    read = {f"evenflow.{name}.v1" for name in ("dispatch", "node-requests", "nodes")}
    agents = user_of("agents")
    assert more == {
        *(Permission(agents, Resource.TOPIC, name, Operation.WRITE) for name in said),
        *(Permission(agents, Resource.TOPIC, name, Operation.READ) for name in read),
        Permission(agents, Resource.TOPIC, "evenflow.", Operation.DESCRIBE, prefixed=True),
        Permission(agents, Resource.TOPIC, "evenflow.", Operation.DESCRIBE_CONFIGS, prefixed=True),
    }


def test_no_one_but_the_administrator_creates_or_alters() -> None:
    """Proves that a service can't make a topic."""
    makers = {one.user for one in LIST if one.operation in (Operation.CREATE, Operation.ALTER, Operation.ALTER_CONFIGS)}
    assert makers == {"evenflow-admin"}
