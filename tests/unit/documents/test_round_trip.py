"""Properties over generated documents: reading what was written gives the same, and nothing but a refusal is raised."""

import contextlib
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.errors import FieldRefused
from evenflow.core.units import decimal_text
from evenflow.events.documents import network, node, policy, queue, reading, task_specification
from evenflow.events.documents.task_specification import FIELDS, parse_task, task_problems
from evenflow.events.documents.task_writing import task_document

few = settings(max_examples=30, deadline=None, derandomize=True, database=None)

ids = st.from_regex(r"[a-z0-9][a-z0-9._-]{0,10}", fullmatch=True)
thousandths = st.integers(0, 10**9).flatmap(lambda n: st.sampled_from([n / 1000, decimal_text(n, 1000), n]))
spans = st.integers(1, 10**9).flatmap(lambda n: st.sampled_from([n / 1000, decimal_text(n, 1000), n]))
sizes = st.one_of(
    st.integers(0, 2**50), st.builds("{}{}".format, st.integers(0, 4000), st.sampled_from(["B", "kB", "MiB", "GB"]))
)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)
labels = st.dictionaries(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,9}", fullmatch=True), words, max_size=3)
shared = {"models": st.lists(ids, max_size=2), "memory": sizes, "precision": st.sampled_from(["bf16", "fp8"])}
devices = st.one_of(
    st.fixed_dictionaries({"count": st.integers(1, 64)}, optional=shared),
    st.fixed_dictionaries({"share": st.integers(1, 1000).map(lambda n: n / 1000)}, optional=shared),
    st.fixed_dictionaries({"memory": st.integers(1, 2**40)}),
    st.just({}),
)
resources = st.fixed_dictionaries({}, optional={"cpu": thousandths, "memory": sizes, "disk": sizes, "devices": devices})
entries = st.fixed_dictionaries({}, optional={"resources": resources})
runs = st.fixed_dictionaries(
    {},
    optional={
        "work_s": thousandths,
        "fail_at_s": thousandths,
        "exit_code": st.integers(0, 255),
        "ready_after_s": st.one_of(thousandths, st.just("never")),
    },
)
checkpoints = st.fixed_dictionaries(
    {},
    optional={
        "every_s": st.one_of(spans, st.just("auto")),
        "cost_s": thousandths,
        "size": sizes,
        "parts": st.integers(1, 9),
    },
)
places = st.fixed_dictionaries({}, optional={"sites": st.lists(ids, max_size=2), "labels": labels, "not_with": labels})
documents = st.fixed_dictionaries(
    {"id": ids},
    optional={
        "tenant": ids,
        "name": words,
        "queue": ids,
        "priority": st.integers(0, 1000),
        "command": st.lists(words, max_size=3),
        "resources": resources,
        "members": st.one_of(st.integers(1, 9), st.lists(entries, min_size=1, max_size=3)),
        "run": runs,
        "declared_s": spans,
        "deadline_s": spans,
        "checkpoint": checkpoints,
        "budget": st.integers(0, 10**12).map(lambda n: decimal_text(n, 10**6)),
        "labels": labels,
        "where": places,
        "latency": st.fixed_dictionaries({"near": ids}, optional={"class": st.sampled_from(["sensitive", "tolerant"])}),
        "objective": st.sampled_from(["finish", "cost"]),
        "preemptible": st.booleans(),
        "one_per_node": st.booleans(),
    },
)  # fmt: skip


@few
@given(documents)
def test_a_task_survives_being_written_and_read(document):
    """parse(task_document(parse(d))) == parse(d), also through JSON bytes, and the written form is stable."""
    task = parse_task(document)
    written = task_document(task)
    assert parse_task(written) == task
    again = parse_task(reading.read_json(json.dumps(written), source="state"))
    assert again == task
    assert task_document(again) == written


leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=3),
    st.decimals(), st.complex_numbers(), st.sampled_from(["1GiB", "0.25", "never", "auto", "1e5", "-0"]),
)  # fmt: skip
names = st.one_of(
    st.sampled_from([*FIELDS, "count", "share", "memory", "level", "size", "sites", "id", "x"]),
    st.text(max_size=4),
    st.integers(),
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
hostile = st.dictionaries(names, anything, max_size=6)

PARSERS = (
    task_specification.parse_task, node.parse_node, network.parse_site, network.parse_link, network.parse_dataset,
    queue.parse_queue, policy.parse_policy, task_specification.canonical_body,
)  # fmt: skip


def refusal(parse, document):
    """What a parser refuses, or None; anything else it raises fails the test."""
    try:
        parse(document)
    except FieldRefused as error:
        return error
    return None


@few
@given(st.one_of(hostile, anything))
def test_no_document_raises_anything_but_a_refusal(document):
    """Any value a program can hand over is taken or refused by a field; the list of problems agrees."""
    for parse in PARSERS:
        refused = refusal(parse, document)
        assert refused is None or (refused.problem and refused.message.encode("utf-8"))
    refused = refusal(lambda given: parse_task(given, new_id=lambda: "made"), document)
    assert task_problems(document)[:1] == ([] if refused is None else [(refused.path, refused.problem)])


@few
@given(st.one_of(st.binary(max_size=60), st.text(max_size=60), st.text("{}[]:,\"'-&*!|>#%\n ab1.\\", max_size=40)))
def test_no_bytes_raise_anything_but_unreadable(data):
    """Whatever stands in a file or a record."""
    for read in (reading.read_json, reading.read_document):
        with contextlib.suppress(reading.Unreadable):
            read(data, source="x")


@few
@given(anything)
def test_json_values_are_read_as_they_were_written(value):
    """The strict reader agrees with the standard one wherever both read."""
    try:
        data = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return
    try:
        read = reading.read_json(data, source="x")
    except reading.Unreadable:
        return
    assert json.dumps(read, sort_keys=True) == json.dumps(json.loads(data), sort_keys=True)
