"""Every command against a running server: what it prints, as table and as JSON, and its exit code."""

from __future__ import annotations

import json

import pytest

QUICK = b"id: quick\nresources: {cpu: 1}\nrun: {work_s: 0.2}\n"


def test_a_submitted_task_runs_and_everything_tells_so(dev):
    """Proves the first minutes of a user: submit, list, status, why, events, ledger, all of one mind."""
    done = dev.run("submit", "-", "--json", given=QUICK)
    assert done.code == 0, done.err
    assert done.json["task"] == "quick"
    dev.until("the end", lambda: dev.run("status", "quick", "--json").json["state"] == "succeeded")
    assert "✓ succeeded" in dev.run("status", "quick").out
    assert [row["task"] for row in dev.run("list", "--state", "succeeded", "-o", "json").json["items"]] == ["quick"]
    assert "quick" in dev.run("list").out
    assert dev.run("why", "quick", "--json").json["state"] == "succeeded"
    course = [row["type"] for row in dev.run("events", "quick", "--json").json["items"]]
    assert course[0] == "task.submitted"
    assert course.index("task.assigned") < course.index("attempt.started") < course.index("attempt.succeeded")
    dev.until("the bill", lambda: dev.run("ledger", "--task", "quick", "--json").json["items"])
    ledger = dev.run("ledger", "--task", "quick", "--json").json
    assert ledger["verified"] is True
    assert [row["kind"] for row in ledger["items"]].count("work") == 1


def test_a_waiting_task_says_why_and_can_be_cancelled(dev):
    """Proves that a task which fits nowhere names its blockers, and ends when it is cancelled."""
    assert dev.run("submit", "-", given=b"id: huge\nresources: {cpu: 4000}\n").code == 0
    found = dev.until("a reason", lambda: dev.run("why", "huge", "--json").json["reasons"])
    assert {"reason", "needed", "way_out"} <= set(found[0])
    assert "huge is queued" in dev.run("why", "huge").out
    assert dev.run("cancel", "huge", "--reason", "enough").code == 0
    dev.until("the end", lambda: dev.run("status", "huge", "--json").json["state"] == "cancelled")
    again = dev.run("cancel", "huge")
    assert (again.code, "already" in again.out) == (0, True)


@pytest.mark.parametrize("what", ["nodes", "sites", "links", "queues", "ledger", "list", "events"])
def test_every_list_is_one_json_value_and_a_table(dev, what):
    """Proves that -o json and --json print the same kind of stable value, and that people get a table."""
    first, second = dev.run(what, "-o", "json"), dev.run(what, "--json")
    assert isinstance(first.json["items"], list)
    assert sorted(first.json) == sorted(second.json)
    table = dev.run(what)
    assert (table.code, table.err) == (0, "")
    assert table.out.strip()


def test_operators_cordon_and_open_a_node(dev):
    """Proves that what is asked of a node is done by its inventory, with who and why on record."""
    assert dev.run("nodes", "cordon", "north-4", "--reason", "fans").code == 0

    def administration() -> str:
        return str(dev.run("nodes", "show", "north-4", "--json").json["administration"])

    dev.until("the cordon", lambda: administration() == "cordoned")
    assert "north-4" in dev.run("nodes").out
    assert dev.run("nodes", "uncordon", "north-4").code == 0
    dev.until("the opening", lambda: administration() == "open")


def test_a_queue_is_a_document_with_versions(dev):
    """Proves that documents are put, listed and shown, and that a wrong field is named."""
    assert dev.run("documents", "put", "queue", "small", "-", given=b"limit: {devices: '0.3'}\n").code == 0
    assert dev.run("documents", "show", "queue", "small").json["document"]["limit"] == {"devices": "0.3"}
    assert "small" in dev.run("documents", "list", "--kind", "queue").out
    wrong = dev.run("documents", "put", "queue", "small", "-", given=b"limits: 1\n")
    assert (wrong.code, "limits" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "given", "code", "words"),
    [
        (("submit", "-"), b"foo: 1\n", 2, "foo"),
        (("submit", "-"), b'budget: "7.00"\n', 3, "planned"),
        (("submit", "/nowhere/at/all"), b"", 2, "can't be read"),
        (("status", "nobody"), b"", 5, "no task"),
        (("why", "nobody"), b"", 5, "evenflow list"),
        (("nodes", "show", "nobody"), b"", 5, "no node"),
        (("list", "--state", "flying"), b"", 2, "flying"),
        (("list", "--limit", "0"), b"", 2, "--limit"),
        (("bench", "engine"), b"", 3, "planned"),
        (("run", "nothing"), b"", 2, "unknown"),
        (("dlq", "show", "x"), b"", 2, "topic/partition/offset"),
        (("dlq", "show", "tasks/0/9"), b"", 5, "dead letter"),
        (("list", "--url", "http://127.0.0.1:9"), b"", 4, "evenflow dev"),
        (("list", "--url", "nonsense"), b"", 2, "http://"),
        (("frobnicate",), b"", 2, "No such command"),
    ],
)
def test_exit_codes_and_errors_say_what_to_do(dev, arguments, given, code, words):
    """Proves that each kind of failure has its documented exit code and a message that helps."""
    done = dev.run(*arguments, given=given)
    assert (done.code, words in done.err + done.out) == (code, True), done
    assert "Traceback" not in done.err


def test_errors_are_json_where_json_was_asked_for(dev):
    """Proves that a script can read the code, the field and the way out."""
    done = dev.run("submit", "-", "--json", given=b"resources: {cpu: -1}\n")
    told = json.loads(done.err)
    assert (done.code, told["path"]) == (2, "resources.cpu")
    assert set(told) == {"code", "path", "problem", "way_out"}
