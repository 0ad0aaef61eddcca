"""The task specification's fields, defaults, rules between fields, and the identity of a body."""

import pytest

from evenflow.core.demand.task import NEVER, Adjacency, CheckpointWish, Devices, Group, Resources, Task
from evenflow.core.errors import FieldRefused
from evenflow.events.documents.task_specification import body_digest, canonical_body, parse_task, task_problems
from evenflow.events.documents.task_writing import task_document

FULL = {
    "id": "t1",
    "tenant": "lab",
    "kind": "job",
    "name": "Größe 训练 \u202eabc",
    "queue": "research",
    "priority": 70,
    "command": ["python", "-c", "print(1)\nprint(2)"],
    "image": "trainer@sha256:ab",
    "env": {"B": "2", "A": "1"},
    "secrets": {"TOKEN": "vault/token"},
    "run": {
        "work_s": "600.5",
        "fail_at_s": 30,
        "exit_code": 3,
        "progress_every_s": 0.5,
        "ready_after_s": 5,
        "memory": {"at_s": 20, "bytes": "12GiB"},
    },
    "resources": {
        "cpu": "0.5",
        "memory": "1.5GiB",
        "disk": "10GB",
        "devices": {"share": 0.25, "models": ["a100-80g"], "memory": "20GiB", "precision": "bf16"},
    },
    "members": 64,
    "min_members": 32,
    "one_per_node": True,
    "groups": [{"size": 8, "level": "node"}, {"size": 4, "level": "rack"}],
    "adjacency": {"level": "rack", "wait_s": 10, "then": "fail"},
    "ready_timeout_s": 60,
    "declared_s": 900,
    "workload": "compute",
    "checkpoint": {"every_s": 60, "cost_s": 1.5, "size": "10GB", "parts": 4},
    "data": [{"dataset": "d", "reads": 2}, {"dataset": "e"}],
    "output": {"size": "1GB", "site": "east"},
    "objective": "cost",
    "budget": "7.00",
    "deadline_s": 3600,
    "latency": {"class": "sensitive", "near": "east"},
    "where": {
        "sites": ["east"],
        "regions": ["r1"],
        "racks": ["a"],
        "nodes": ["n1"],
        "not_nodes": ["n2"],
        "apart_from": ["t0"],
        "not_with": {"k": "v"},
        "labels": {"a/b": "x"},
        "residency": ["r1"],
    },
    "max_failures": 1,
    "reschedule_on_lost": False,
    "preemptible": False,
    "labels": {"team": "blue"},
}


def with_field(path, value):
    """A small good specification with one field set, along a dotted path."""
    document = {"id": "t"}
    at = document
    *parents, last = path.split(".")
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = value
    return document


def test_an_empty_specification_asks_for_one_core_and_one_gibibyte():
    """Every field but the id has its default."""
    assert parse_task({"id": "t"}) == Task(tenant="default", id="t")
    assert parse_task({"id": "t"}).resources == Resources(1_000, 2**30, 0, Devices())


def test_every_field_is_kept_exactly():
    """Decimals become milli-units, sizes bytes, durations milliseconds, money micro-units."""
    task = parse_task(FULL)
    assert (task.tenant, task.name, task.priority) == ("lab", FULL["name"], 70)
    assert task.resources == Resources(500, 3 * 2**29, 10 * 10**9, Devices(0, 250, ("a100-80g",), 20 * 2**30, "bf16"))
    assert (task.run.work_ms, task.run.progress_every_ms, task.run.memory.bytes) == (600_500, 500, 12 * 2**30)
    assert task.groups == (Group(8, "node"), Group(4, "rack"))
    assert task.adjacency == Adjacency("rack", 10_000, "fail")
    assert task.checkpoint == CheckpointWish(60_000, 1_500, 10**10, 4)
    assert (task.budget_micro, task.deadline_ms, task.declared_ms) == (7_000_000, 3_600_000, 900_000)
    assert task.env == (("A", "1"), ("B", "2"))
    assert task.where.labels == (("a/b", "x"),)


def test_writing_and_reading_give_an_equal_task():
    """State records and desired state carry what task_document writes."""
    task = parse_task(FULL)
    assert parse_task(task_document(task)) == task
    assert task_document(parse_task({"id": "t"})) == {"id": "t", "tenant": "default"}


def test_an_exponent_is_fine_in_a_number_and_refused_in_text():
    """JSON writers may use one; people who quote a number mean it literally."""
    assert parse_task(with_field("resources.cpu", 1e1)).resources.cpu_milli == 10_000
    assert parse_task(with_field("resources.memory", 1e9)).resources.memory_bytes == 10**9
    with pytest.raises(FieldRefused, match=r"resources\.cpu"):
        parse_task(with_field("resources.cpu", "1e1"))


def test_words_stand_for_what_no_number_says():
    """`never` and `auto` are the two words among durations."""
    assert parse_task(with_field("run.ready_after_s", "never")).run.ready_after_ms == NEVER
    assert parse_task(with_field("checkpoint.every_s", "auto")).checkpoint == CheckpointWish(None)
    assert parse_task(with_field("checkpoint", {})).checkpoint == CheckpointWish(None)


def test_device_memory_alone_asks_for_any_share_of_one_device():
    """The wish survives being written, so that an engine may still choose the share."""
    task = parse_task(with_field("resources.devices.memory", "20GiB"))
    assert task.resources.devices == Devices(0, 1, (), 20 * 2**30, any_share=True)
    assert parse_task(task_document(task)) == task
    explicit = parse_task(with_field("resources.devices", {"memory": "20GiB", "share": "0.001"}))
    assert explicit != task
    assert parse_task(task_document(explicit)) == explicit


@pytest.mark.parametrize("value", [{}, {"count": 0}])
def test_asking_for_no_device_is_allowed_when_said_plainly(value):
    """Zero whole devices is a way to say none."""
    assert parse_task(with_field("resources.devices", value)).resources.devices == Devices()


@pytest.mark.parametrize(
    "value", [{"models": ["t4"]}, {"precision": "bf16"}, {"count": 0, "memory": "1GiB"}, {"memory": 0}]
)
def test_a_wish_about_devices_without_a_device_is_refused(value):
    """A task must never be turned silently into one that asks for nothing."""
    with pytest.raises(FieldRefused) as caught:
        parse_task(with_field("resources.devices", value))
    assert caught.value.path.startswith("resources.devices.")


def test_members_may_be_listed_one_by_one():
    """An entry without resources takes those of the task; the list is the number."""
    task = parse_task(
        {
            "id": "g",
            "resources": {"cpu": 2},
            "members": [{"resources": {"cpu": 8, "devices": {"count": 1}}}, {}],
        }
    )
    assert task.members == 2
    assert task.resources_of(0).devices.count == 1
    assert task.resources_of(1).cpu_milli == 2_000
    assert parse_task(task_document(task)) == task


@pytest.mark.parametrize(
    ("path", "value", "at"),
    [
        ("min_members", 3, "min_members"),
        ("groups", [{"size": 3, "level": "node"}], "groups[0].size"),
        ("groups", [{"size": 2, "level": "rack"}, {"size": 1, "level": "node"}], "groups[1].level"),
        ("groups", [{"size": 2, "level": "rack"}, {"size": 1, "level": "rack"}], "groups[1].level"),
        ("data", [{"dataset": "d"}, {"dataset": "d"}], "data[1].dataset"),
        ("latency", {"class": "sensitive"}, "latency.near"),
        ("adjacency", {"wait_s": 1}, "adjacency.level"),
        ("output", {"site": "east"}, "output.size"),
        ("run", {"memory": {"at_s": 1}}, "run.memory.bytes"),
    ],
)
def test_rules_between_fields_name_the_field_that_breaks_them(path, value, at):
    """A gang of two breaks each of these in one way."""
    with pytest.raises(FieldRefused) as caught:
        parse_task({"id": "t", "members": 2, path: value})
    assert caught.value.path == at


def test_a_missing_id_is_made_by_the_caller_or_refused():
    """Ids come from the runtime, never from here."""
    assert parse_task({}, new_id=lambda: "made-1").id == "made-1"
    with pytest.raises(FieldRefused) as caught:
        parse_task({})
    assert caught.value.path == "id"


def test_a_document_can_not_speak_for_another_tenant():
    """Who submits is known from the envelope."""
    assert parse_task({"id": "t"}, tenant="lab").tenant == "lab"
    assert parse_task({"id": "t", "tenant": "lab"}, tenant="lab").tenant == "lab"
    with pytest.raises(FieldRefused) as caught:
        parse_task({"id": "t", "tenant": "other"}, tenant="lab")
    assert caught.value.path == "tenant"


def test_all_problems_are_found_in_one_pass_in_the_order_of_the_document():
    """A person corrects a file once, not once per mistake."""
    document = {
        "id": "T",
        "wrong": 1,
        "resources": {"cpu": -1, "devices": {"share": 0, "models": ["ok", "Not ok"]}},
        "labels": {"good": 1, "bad key": "x"},
        "members": [{}, {"cpu": 1}],
    }
    paths = [path for path, _ in task_problems(document)]
    assert paths == [
        "id",
        "wrong",
        "resources.cpu",
        "resources.devices.share",
        "resources.devices.models[1]",
        "labels.good",
        'labels."bad key"',
        "members[1].cpu",
    ]
    assert task_problems({"name": "fine, and without an id"}) == []
    with pytest.raises(FieldRefused) as caught:
        parse_task(document)
    assert caught.value.path == "id"


def test_a_body_is_the_same_whatever_the_order_of_its_keys():
    """The rule of a used id compares content, not spelling."""
    assert canonical_body({"b": {"y": 1, "x": "é"}, "a": [1]}) == b'{"a":[1],"b":{"x":"\\u00e9","y":1}}'
    assert body_digest({"id": "t", "priority": 1}) == body_digest({"priority": 1, "id": "t"})
    assert body_digest({"id": "t", "priority": 1}) != body_digest({"id": "t", "priority": 2})


@pytest.mark.parametrize("document", [{"a": {1, 2}}, {("a",): 1}, {"a": object()}])
def test_what_json_can_not_hold_has_no_body(document):
    """A program that hands over such a thing gets the usual error."""
    with pytest.raises(FieldRefused):
        canonical_body(document)
