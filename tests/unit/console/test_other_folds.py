"""Fleet, ledger, documents, alerts and the tail of events as folds."""

from __future__ import annotations

import json

import pytest

from evenflow.console.projection.feed import Feed, Wanted
from evenflow.core.ledger.chain import GENESIS, line_hash
from evenflow.events import streams
from evenflow.events.contracts.billing import ChargeRecorded
from evenflow.events.contracts.console import ChangeRecorded, DocumentPublished
from evenflow.events.contracts.inventory import NodeRefused, NodeRegistered
from evenflow.events.contracts.placement import AttemptDesired
from evenflow.events.contracts.platform import AlertAcknowledged, AlertCleared, AlertRaised


def node(name="n1", revision=1, **more):
    document = {"id": name, "site": "east", "cpu": 4, "memory": "8GiB", "disk": "10GB", "devices": {"count": 2}}
    fields = {"reach": "ok", "administration": "open", "health": "ok", **more}
    return NodeRegistered(node=name, revision=revision, document=document, session="s", **fields)


def charge(number, previous, amount=5, balance=None, **more):
    fields = {
        "entry": f"default/t1/1/0/{number}", "queue": "q", "number": number, "kind": "work", "tenant": "default",
        "task": "t1", "attempt": 1, "member": 0, "node": "n1", "site": "east", "currency": "CNY",
        "amount_micro": amount,
        "balance_micro": amount * number if balance is None else balance, "duration_ms": 10, "device_milli_ms": 100,
        "bytes": 0, "at_ms": 1, "rate_version": "", "note": "",
    }  # fmt: skip
    fields |= more
    return ChargeRecorded(**fields, previous=previous, hash=line_hash(previous, fields))


def desired(facts, wish="run", devices=1):
    return AttemptDesired(
        tenant="default", task="t1", queue="research", pool="main", epoch=1, attempt=1, generation=1, wish=wish,
        place=facts.place(devices=devices),
    )  # fmt: skip


def test_a_place_is_held_until_its_tombstone(board, tell, facts):
    """Proves that capacity shows as free again only when placement took the desired state back."""
    board.apply(tell(streams.NODES, node()))
    board.apply(tell(streams.DISPATCH, desired(facts)))
    assert board.fleet.row("n1")["free"]["devices_milli"] == 1000
    board.apply(tell(streams.DISPATCH, desired(facts, "reclaim")))
    assert board.fleet.row("n1")["free"]["devices_milli"] == 1000
    board.apply(tell(streams.DISPATCH, None, key="n1/default/t1/1/0"))
    assert board.fleet.row("n1")["free"]["devices_milli"] == 2000


def test_a_broken_device_is_not_free(board, tell):
    """Proves that free counts usable devices alone."""
    board.apply(tell(streams.NODES, node(devices=({"index": 1, "state": "broken"},))))
    assert board.fleet.row("n1")["free"]["devices_milli"] == 1000


def test_a_refused_node_overwrites_no_registered_one(board, tell):
    """Proves that a bad announcement is listed beside the node that it names."""
    board.apply(tell(streams.NODES, node()))
    board.apply(tell(streams.NODES, NodeRefused(node="n1", path="cpu", problem="is negative")))
    assert board.fleet.names() == ["n1"]
    assert board.fleet.refusals["n1"]["path"] == "cpu"


def test_a_running_task_on_a_lost_node_is_unreachable(board, tell, facts):
    """Proves that a task which placement did not give up carries the flag while its node is lost."""
    board.apply(tell(streams.NODES, node()))
    board.apply(tell(streams.ASSIGNMENTS, facts.assigned()))
    task = board.tasks.find("default/t1")
    assert board.task_row(task)["unreachable"] is False
    board.apply(tell(streams.NODES, node(revision=2, reach="lost")))
    assert board.task_row(task)["unreachable"] is True


def test_the_sums_of_a_queue_are_those_of_its_lines(board, tell):
    """Proves that totals by queue, kind and task agree, and that a whole chain verifies."""
    previous = GENESIS
    for number in range(1, 6):
        line = charge(number, previous)
        previous = line.hash
        board.apply(tell(streams.BILLING, line))
    book = board.ledger.books["q"]
    assert (book.sums.amount_micro, book.balance_micro, book.broken_at) == (25, 25, 0)
    assert board.ledger.cost_micro("default/t1") == 25
    assert sum(row["amount_micro"] for row in (line.row() for line in board.ledger.lines("q", 10))) == 25


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (lambda first: charge(3, first.hash), "line 2 is missing"),
        (lambda first: charge(2, GENESIS), "it does not name the hash of the line before it"),
        (lambda first: charge(2, first.hash, balance=11), "its balance is not the one before it plus its amount"),
        (
            lambda first: charge(2, first.hash).model_copy(update={"note": "altered"}),
            "its hash is not that of its fields",
        ),
    ],
)
def test_a_broken_chain_is_found_at_its_line(board, tell, second, why):
    """Proves that a missing line, a foreign predecessor, a wrong balance and an altered byte are each found."""
    first = charge(1, GENESIS)
    board.apply(tell(streams.BILLING, first))
    board.apply(tell(streams.BILLING, second(first)))
    book = board.ledger.books["q"]
    assert book.broken_at in (2, 3)
    assert book.broken_why == why


def test_a_line_read_twice_counts_once(board, tell):
    """Proves that redelivery does not double a bill."""
    line = charge(1, GENESIS)
    board.apply(tell(streams.BILLING, line))
    board.apply(tell(streams.BILLING, line))
    assert (board.ledger.books["q"].sums.line_count, board.ledger.books["q"].broken_at) == (1, 0)


def test_the_history_of_a_document_outlives_its_compaction(board, tell):
    """Proves that older versions are read back from the audit when only the newest record is left."""
    change = {"version": 1, "document": {"id": "q"}}
    board.apply(
        tell(streams.AUDIT, ChangeRecorded(actor="a", action="document.publish", subject="queue/q", parameters=change))
    )
    newest = DocumentPublished(kind="queue", name="q", version=2, document={"id": "q", "waiting_limit": 2})
    board.apply(tell(streams.POLICIES, newest))
    assert [row["version"] for row in board.papers.versions("queue/q")] == [2, 1]
    assert board.papers.version("queue/q") == 2


def test_an_alert_is_open_from_raised_to_cleared(board, tell):
    """Proves that repeated raising opens one alert, and that clearing moves it to the past."""
    common = {"name": "node.lost", "subject": "n1", "at_ms": 5}
    board.apply(tell(streams.ALERTS, AlertRaised(**common)))
    board.apply(tell(streams.ALERTS, AlertRaised(**common)))
    board.apply(tell(streams.ALERTS, AlertAcknowledged(**common, who="me")))
    assert [row["acknowledged_by"] for row in board.activity.alerts()] == ["me"]
    board.apply(tell(streams.ALERTS, AlertCleared(**common)))
    assert board.activity.alerts() == []
    assert [row["subject"] for row in board.activity.past] == ["n1"]


def test_a_reader_gets_each_event_once_and_in_order(tell, facts):
    """Proves that a reader who holds one number misses nothing and sees nothing twice."""
    feed = Feed("life", 100)
    seen, position = [], 0
    for number in range(30):
        feed.put(tell(streams.ASSIGNMENTS, facts.assigned(f"t{number}")))
        if number % 7 == 0:
            position, rows = feed.after(position, Wanted(), 3)
            seen += [row["body"]["task"] for row in rows]
    while True:
        position, rows = feed.after(position, Wanted(), 3)
        if not rows:
            break
        seen += [row["body"]["task"] for row in rows]
    assert seen == [f"t{number}" for number in range(30)]


def test_a_reader_that_was_away_too_long_is_told_so(tell, facts):
    """Proves that the tail is bounded, and that a cursor of another life or too far back is refused."""
    feed = Feed("life", 10)
    for number in range(30):
        feed.put(tell(streams.ASSIGNMENTS, facts.assigned(f"t{number}")))
    assert feed.position("life-20") == 20
    assert [feed.position(cursor) for cursor in ("life-19", "life-31", "other-25", "", "life-x", "life--1")] == [
        None
    ] * 6


def test_a_filter_passes_only_what_fits(tell, facts):
    """Proves the filters of the tail: topic, type with a star, task with and without tenant, node."""
    feed = Feed("life", 10)
    feed.put(tell(streams.ASSIGNMENTS, facts.assigned("t1")))
    feed.put(tell(streams.NODES, node()))
    for wanted, count in (
        (Wanted(), 2), (Wanted(topic="evenflow.nodes.v1"), 1), (Wanted(type="task.*"), 1),
        (Wanted(type="node.changed"), 0),
        (Wanted(task="t1"), 1), (Wanted(task="default/t1"), 1), (Wanted(task="t2"), 0), (Wanted(node="n1"), 1),
    ):  # fmt: skip
        assert len(feed.newest(wanted, 10)) == count, wanted
    assert json.loads(json.dumps(feed.newest(Wanted(task="t1"), 1)))[0]["body"]["task"] == "t1"
