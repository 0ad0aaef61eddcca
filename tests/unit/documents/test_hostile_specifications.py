"""Numbers and names that have broken other schedulers are refused by their field, or come back byte for byte."""

import json
from decimal import Decimal

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.reading import read_document, read_json
from evenflow.events.documents.task_specification import MEMBERS_MAX, parse_task
from evenflow.events.documents.task_writing import task_document

NAN, INFINITY = float("nan"), float("inf")


def refused_at(document, parse=parse_task):
    with pytest.raises(FieldRefused) as caught:
        parse(document)
    assert caught.value.problem
    assert len(str(caught.value)) < 1_500
    str(caught.value).encode()
    return caught.value.path


def task_with(path, value):
    document = {"id": "t", "resources": {"devices": {}}}
    at = document
    *parents, last = path.split(".")
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = value
    return document


BAD_NUMBERS = [
    NAN, "nan", "NaN", INFINITY, -INFINITY, "Infinity", "inf", -0.5, -0.0, "-0", "-0.0", "+1", "-1", "", " 1", "1 ",
    "0x1", "1e3", "1_000", "1,5", "1.", ".5", "00.5", "\u0661", None, True, False, [], {}, [1], 1e300, "9" * 70,
    10**400, Decimal("NaN"), Decimal("sNaN"), Decimal("1e999999"), Decimal(-1), 1j, b"1",
]  # fmt: skip


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1e-12, 0, 0.0, "0", "0.000", 0.0001, "0.0001", 1.001, 2, 1000])
def test_a_bad_device_share_is_refused_by_its_field(value):
    """No share may become nothing, nothing may become a share, and no share is more than a device."""
    assert refused_at(task_with("resources.devices.share", value)) == "resources.devices.share"


@pytest.mark.parametrize(
    "path",
    [
        "resources.cpu",
        "run.work_s",
        "declared_s",
        "deadline_s",
        "ready_timeout_s",
        "run.fail_at_s",
        "checkpoint.cost_s",
    ],
)
@pytest.mark.parametrize("value", [*BAD_NUMBERS, 1e-12, 0.0001, "1.0001"])
def test_a_bad_decimal_is_refused_by_its_field(path, value):
    """The same list holds for cores and durations."""
    assert refused_at(task_with(path, value)) == path


@pytest.mark.parametrize("path", ["resources.memory", "resources.disk", "resources.devices.memory", "output.size"])
@pytest.mark.parametrize(
    "value",
    [*BAD_NUMBERS, "-1GiB", "1.5B", "0.3KiB", "1gib", "1 Gi", "GiB", "1GiB ", "NaNGiB", "1e3MB", 0.5, "8192TiB "],
)
def test_a_bad_size_is_refused_by_its_field(path, value):
    """A size must give whole bytes in a known unit."""
    assert refused_at(task_with(path, value)) == path


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 0, 0.0, 2.5, -2, MEMBERS_MAX + 1, 1e100, "3", []])
@pytest.mark.parametrize("path", ["members", "min_members"])
def test_a_bad_number_of_members_is_refused_by_its_field(path, value):
    """A gang of none, of half a member or of text is no gang."""
    assert refused_at(task_with(path, value)) == (f"{path}[0]" if value == [1] and path == "members" else path)


@pytest.mark.parametrize("value", [NAN, -1, 1001, "50", 0.5, True, None, INFINITY, "0001-01-01"])
def test_a_bad_priority_is_refused_by_its_field(value):
    """Priorities are whole, from 0 to 1,000."""
    assert refused_at(task_with("priority", value)) == "priority"


@pytest.mark.parametrize("value", ["0000-01-01T00:00:00Z", "year 0", 0, "0"])
def test_a_deadline_in_the_year_zero_is_refused(value):
    """A deadline is a duration from submission, above zero."""
    assert refused_at(task_with("deadline_s", value)) == "deadline_s"


@pytest.mark.parametrize("value", [*BAD_NUMBERS, 7, 7.0, 0, "7.0000001", "7.00 CNY"])
def test_money_is_decimal_text_and_nothing_else(value):
    """A number would be rounded by some program on its way."""
    assert refused_at(task_with("budget", value)) == "budget"


def test_a_share_together_with_a_count_is_refused():
    """The two ways of asking never add up."""
    assert refused_at(task_with("resources.devices", {"share": 0.5, "count": 1})) == "resources.devices.share"
    assert refused_at(task_with("resources.devices", {"share": 0.5, "count": 0})) == "resources.devices.share"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"id": "nx", "site": "s", "cpu": -4}, "cpu"),
        ({"id": "ny", "site": "s", "devices": {"count": NAN}}, "devices.count"),
        ({"id": "nz", "site": "s", "devices": {"count": "2"}}, "devices.count"),
        ({"id": "nz", "site": "s", "memory": "-1GiB"}, "memory"),
        ({"id": "nz", "site": "s", "price_per_hour": NAN}, "price_per_hour"),
    ],
)
def test_a_node_with_hostile_numbers_is_refused_by_its_field(document, path):
    """Totals of the fleet stay finite and never fall below zero."""
    assert refused_at(document, parse_node) == path


@pytest.mark.parametrize(
    "row", ["NaN", "Infinity", "-Infinity", "-0.0", "-0", "1e-12", "1e-999", "0.10000000000000000000001"]
)
def test_the_same_numbers_are_refused_when_they_come_as_bytes(row):
    """Reading never repairs what the field must refuse, in JSON or in YAML."""
    body = f'{{"id": "t", "resources": {{"devices": {{"share": {row}}}}}}}'
    assert refused_at(read_json(body, source="x")) == "resources.devices.share"
    text = f"id: t\nresources:\n  devices:\n    share: {row}\n"
    assert refused_at(read_document(text, source="x")) == "resources.devices.share"


NAMES = [
    "a" * 300, "b" * 255 + "1", "b" * 255 + "2", "🚀", "שלום עולם", "e\u0301", "\u00e9", "Task", "task", " x", "x ", "",
    "a/b", "../../etc", "a.b", "$where", "{{x}}", "'; drop table", "<script>", "a\u2028b", "名前", "x" * 1024,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_accepted_name_comes_back_byte_for_byte(name):
    """Through the wire, the parser and the state record: no cutting, no folding, no normalising."""
    task = parse_task(read_json(json.dumps({"id": "t", "name": name}), source="x"))
    assert task.name == name
    assert parse_task(json.loads(json.dumps(task_document(task)))).name == name


@pytest.mark.parametrize(
    "name", ["a\0b", "a\nb", "\x1b[31m", "a\x7fb", "a\x85b", "x" * 1025, "é" * 513, "\ud800", 1, None, ["a"]]
)
def test_a_name_that_would_break_a_line_or_a_terminal_is_refused(name):
    """Control characters, half surrogates and names above 1,024 bytes are named as such."""
    assert refused_at({"id": "t", "name": name}) == "name"


@pytest.mark.parametrize(
    "name", [*[name for name in NAMES if name not in {"task", "a.b"}], "a\0b", "a\nb", "\u0430", "t\n", "-a", ".."]
)
@pytest.mark.parametrize("path", ["id", "queue", "tenant"])
def test_an_id_that_could_be_mistaken_is_refused(path, name):
    """Ids become keys, paths and labels of metrics: small ASCII letters, digits, dot, dash, underscore, at most 128."""
    assert refused_at({"id": "t", path: name}) == path


@pytest.mark.parametrize("value", ["a", "0", "a" * 128, "a.b-c_d", "a..b"])
def test_a_plain_id_is_taken(value):
    """The grammar's edge is inside."""
    assert parse_task({"id": value}).id == value


@pytest.mark.parametrize(
    ("document", "path", "bound"),
    [
        ({"labels": {f"k{index}": "v" for index in range(10_000)}}, "labels", "64"),
        ({"labels": {"k": "v" * 1_000_000}}, "labels.k", "1024"),
        ({"labels": {"k" * 200: "v"}}, 'labels."' + "k" * 61 + '…"', "128"),
        ({"env": {f"K{index}": "v" for index in range(10_000)}}, "env", "256"),
        ({"env": {"K": "v" * 40_000}}, "env.K", "32768"),
        ({"command": ["a"] * 5_000}, "command", "1024"),
        ({"where": {"nodes": ["n"] * 5_000}}, "where.nodes", "1024"),
        ({"data": [{"dataset": f"d{index}"} for index in range(100)]}, "data", "64"),
        ({"members": [{}] * 20_000}, "members", "16384"),
        ({"secrets": {"A": "r" * 2_000}}, "secrets.A", "1024"),
        ({"image": "i" * 2_000}, "image", "1024"),
    ],
)
def test_what_is_too_large_is_refused_with_the_bound(document, path, bound):
    """Nothing is cut without notice."""
    with pytest.raises(FieldRefused) as caught:
        parse_task({"id": "t", **document})
    assert caught.value.path == path
    assert bound in caught.value.problem


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (None, ""),
        ([], ""),
        ("id: t", ""),
        (7, ""),
        ({"id": "t", "colour": "red"}, "colour"),
        ({"id": "t", "resources": {"gpu": 1}}, "resources.gpu"),
        ({"id": "t", "queue": None}, "queue"),
        ({"id": "t", "resources": None}, "resources"),
        ({"id": "t", "where": {"sites": [None]}}, "where.sites[0]"),
        ({"id": "t", "where": {"sites": "east"}}, "where.sites"),
        ({"id": "t", "one_per_node": 1}, "one_per_node"),
        ({"id": "t", "preemptible": "true"}, "preemptible"),
        ({"id": "t", "workload": ["compute"]}, "workload"),
        ({"id": "t", "command": "python train.py"}, "command"),
        ({"id": "t", "env": {"A": 1}}, "env.A"),
        ({"id": "t", "env": {"A": "a\0b"}}, "env.A"),
        ({"id": "t", "env": {"1A": "x"}}, "env.1A"),
        ({"id": "t", "env": {"A=B": "x"}}, 'env."A=B"'),
        ({1: "x"}, "(int as a name)"),
        ({"id": "t", "a\x1b[31m": 1}, r'"a\u001b[31m"'),
    ],
)
def test_a_document_of_another_shape_is_refused_by_its_field(document, path):
    """Unknown fields, null, other kinds of value and hostile names of fields: each has its path, printable."""
    assert refused_at(document) == path


def test_a_document_with_a_million_unknown_fields_lists_a_few():
    """The answer to a wrong document is bounded too."""
    assert refused_at({f"x{index}": 1 for index in range(100_000)}) == "x0"
