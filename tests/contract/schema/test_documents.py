"""The published schemas of what people write agree with the doors: on good documents, on bad ones, on hostile ones."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.core.units import MICRO, decimal_text
from evenflow.events.documents import forms, network, node, policy, queue, task_specification
from evenflow.events.documents.fields import problems_of
from evenflow.events.documents.readiness import documented_fields
from evenflow.events.schema.document_schema import KINDS, document_schema

many = settings(max_examples=80, deadline=None, derandomize=True, database=None)

ROOTS = {
    "dataset": forms.form_of(network.read_dataset),
    "link": forms.form_of(network.read_link),
    "node": forms.form_of(node.read_node),
    "policy": forms.form_of(policy.read_policy),
    "queue": forms.form_of(queue.read_queue),
    "site": forms.form_of(network.read_site),
    "task": forms.Fields(task_specification.FIELDS),
}
DOORS = {
    "dataset": lambda given: problems_of(network.read_dataset, given),
    "link": lambda given: problems_of(network.read_link, given),
    "node": node.node_problems,
    "policy": policy.policy_problems,
    "queue": lambda given: problems_of(queue.read_queue, given),
    "site": lambda given: problems_of(network.read_site, given),
    "task": task_specification.task_problems,
}
#: Beginnings and parts of what a door refuses and JSON Schema has no words for.
UNSAYABLE = (
    "has more decimal places than",  # places of a number
    "has more digits than",
    "must not be negative or carry a sign",  # -0.0
    "is larger than",  # of an amount with its unit
    "bytes; at most",  # bytes, not characters
    "has the character U+D8",  # half of a surrogate pair
    "is listed twice",
    "has a copy already",
    "must be wider than",
    "members are no whole number",
    "is more than members",
    "is where the link begins",
    "is the queue itself",
    "the first wait, and the longest",
)


def drawn(form):
    """A strategy for values of a form."""
    match form:
        case forms.Truth():
            return st.booleans()
        case forms.Whole(low, high):
            return st.integers(low, high) | st.sampled_from([low, high])
        case forms.Decimal(scale, low, high):
            steps = st.integers(-high if form.signed else low, high) | st.sampled_from([low, high])
            return steps.flatmap(lambda n: st.sampled_from([n / scale, decimal_text(n, scale), n // scale]))
        case forms.Money():
            return st.integers(0, 2**53).map(lambda n: decimal_text(n, MICRO))
        case forms.Amount(units, low):
            text = st.builds(
                "{}{}{}".format, st.integers(low, 9000), st.sampled_from(["", " ", ".5"]), st.sampled_from(list(units))
            )
            return st.integers(low, 2**53) | text | st.sampled_from(["0", "7", "7.0", "1.024kB", "0.001KiB", "0GB"])
        case forms.Choice(words):
            return st.sampled_from(words)
        case forms.Pattern(pattern):
            return st.from_regex(pattern, fullmatch=True)
        case forms.Text(_, lines, empty):
            without = ["Cs"] if lines else ["Cc", "Cs"]
            return st.text(st.characters(exclude_categories=without), min_size=not empty, max_size=9)
    return drawn_compound(form)


def drawn_compound(form):
    match form:
        case forms.Items(entry, low, high):
            return st.lists(drawn(forms.form_of(entry)), min_size=low, max_size=min(high, low + 2))
        case forms.Pairs(key, entry, _):
            return st.dictionaries(st.from_regex(key, fullmatch=True), drawn(forms.form_of(entry)), max_size=3)
        case forms.Either(choices):
            return st.one_of([drawn(choice) for choice in choices])
    assert isinstance(form, forms.Fields)
    fields = {name: drawn(forms.form_of(reader)) for name, reader in form.readers.items()}
    needed = {name: fields.pop(name) for name in form.required}
    return st.fixed_dictionaries(needed, optional=fields)


GOOD = {kind: drawn(root) for kind, root in ROOTS.items()}
JUNK = [
    None, True, False, 0, -0.0, -1, 0.5, 0.0001, 1, 1.0, 3, 1024, 1025, 16385, 2**53, 2**53 + 1, 1e300, 1e-300, "",
    " ", "0", "-0", "00", "1", "+1", "-1", "1.5", ".5", "1.", "1e3", "0x1", "1_000", "NaN", "Infinity", "٣",
    "7.0000001", "1.0001", "100%", "10%", "101%", "5.00001%", "%", "16GiB", "16 GiB", "16gib", "1.5B", "0.3KiB",
    "GiB", "1GiB ", "10Gbit/s", "0bit/s", "0.0 Gbit/s", "-1GiB", "auto", "never", "root", "default", "easy", "adopt",
    "CNY", "cny", "USDX", "a", "A", "a/b", "a\n", "a\0", "\x1b", "a\x85", "é", "名", "a" * 128, "a" * 129, "x" * 1025,
    [], [1], ["a"], ["a", "a"], ["a\n"], [None], [{}], [5, 300], [300, 5], [0, 1], [1, 2, 3], {}, {"a": 1},
    {"a": "b"}, {"cpu": 1}, {"count": 1}, {"count": 0}, {"share": 0.5}, {"share": 0.5, "count": 1}, {"memory": 0},
    {"memory": "0.0GiB"}, {"memory": 1}, {"memory": 1, "count": 0}, {"models": ["a100"]}, {"models": [], "count": 0},
    {"models": ["a100"], "count": 2}, {"models": ["a100"], "memory": "1GiB"}, {"a b": "c"}, {"": ""},
    {"x" * 129: "y"}, {"level": "node"}, {"class": "sensitive"}, {"class": "sensitive", "near": "x"}, {"near": "x"},
]  # fmt: skip


def places(value, at=()):
    """Every path of a document."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*at, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from places(one, (*at, index))


def put(document, at, value):
    """The document with another value at one place."""
    if not at:
        return value
    changed = copy.deepcopy(document)
    holder = changed
    for step in at[:-1]:
        holder = holder[step]
    holder[at[-1]] = value
    return changed


def agree(kind, document, validator):
    """What the two say of a document differs only where a schema has no words. Gives whether the door took it."""
    problems = DOORS[kind](document)
    errors = [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(document)]
    if not problems:
        assert errors == [], document
    elif not errors:
        said = [problem for problem in problems if not any(part in problem[1] for part in UNSAYABLE)]
        assert said == [], document
    return not problems


@pytest.fixture(scope="module")
def validators(strict):
    return {kind: strict(document_schema(kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@many
@given(data=st.data())
def test_what_the_forms_describe_is_taken_by_both(validators, kind, data):
    """Proves on documents made of good fields that the door takes nothing that its schema refuses, and the reverse."""
    agree(kind, data.draw(GOOD[kind]), validators[kind])


@pytest.mark.parametrize("kind", KINDS)
@many
@given(data=st.data())
def test_one_bad_place_is_seen_by_both(validators, kind, data):
    """Proves the same with one place of a good document replaced by something hostile, or a field nobody knows."""
    document = data.draw(GOOD[kind])
    at = data.draw(st.sampled_from(list(places(document))))
    if data.draw(st.integers(0, 9)) == 0:
        at = (*at[:-1], "surplus") if at and isinstance(at[-1], str) else at
    agree(kind, put(document, at, data.draw(st.sampled_from(JUNK))), validators[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_meets_every_hostile_value(validators, kind):
    """Proves agreement field by field: each field of each map, with each value of the list."""
    taken = 0
    for path, required in fields_of(ROOTS[kind]):
        for value in JUNK:
            taken += agree(kind, nested(path, required, value), validators[kind])
    assert taken > len(list(fields_of(ROOTS[kind])))


def fields_of(form, path=(), required=()):
    """Each field of a document as a path, with the required fields of each map on the way."""
    for name, reader in form.readers.items():
        here, needed = (*path, name), (*required, form.required)
        yield here, needed
        inner = forms.form_of(reader)
        for choice in inner.forms if isinstance(inner, forms.Either) else (inner,):
            if isinstance(choice, forms.Items):
                entry = forms.form_of(choice.entry)
                if isinstance(entry, forms.Fields):
                    yield from fields_of(entry, (*here, 0), (*needed, ()))
            elif isinstance(choice, forms.Fields):
                yield from fields_of(choice, here, needed)


REQUIRED = {"bandwidth": 1, "size": 1, "count": 1, "at_s": 1, "bytes": 1, "level": "node", "to": "b"}


def nested(path, required, value):
    """A document that holds `value` at a path, and what is required around it."""
    if not path:
        return value
    if path[0] == 0:
        return [nested(path[1:], required[1:], value)]
    around = {name: REQUIRED.get(name, "a") for name in required[0]}
    return {**around, path[0]: nested(path[1:], required[1:], value)}


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_required_field_is_seen_by_both(validators, kind):
    """Proves that required means required in the schema, at every depth."""
    assert validators[kind].is_valid({}) == (not DOORS[kind]({}))
    for name in ROOTS[kind].required:
        document = {one: REQUIRED.get(one, "a") for one in ROOTS[kind].required if one != name}
        assert not agree(kind, document, validators[kind])
        assert not validators[kind].is_valid(document)


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("task", {"id": "t", "resources": {"devices": {"share": "0.0001"}}}),
        ("task", {"id": "t", "resources": {"cpu": "0.00010"}}),
        ("task", {"id": "t", "resources": {"memory": "1.0001kB"}}),
        ("task", {"id": "t", "budget": 7}),
        ("task", {"id": "t", "budget": "7.0000001"}),
        ("task", {"id": "t", "latency": {"class": "sensitive"}}),
        ("task", {"id": "t", "members": []}),
        ("task", {"id": "a/b"}),
        ("task", {"id": "t", "nmae": "x"}),
        ("node", {"id": "n", "site": "s", "devices": {"count": 1.5}}),
        ("link", {"from": "a", "to": "b", "bandwidth": "0.00Gbit/s"}),
        ("link", {"from": "a", "to": "b", "bandwidth": 1, "loss": "1.000001"}),
        ("site", {"id": "s", "latitude": "90.000001"}),
        ("site", {"id": "s", "longitude": -180.5}),
        ("queue", {"id": "root", "parent": "a"}),
        ("policy", {"headroom": {"node": {"cpu": "100.1%"}}}),
        ("policy", {"retry": {"backoff_s": ["86400.001", "86401"]}}),
        ("policy", {"retry": {"memory_growth": "0.99"}}),
        ("policy", {"billing": {"currency": "usd"}}),
    ],
)
def test_the_schema_says_what_can_be_said(validators, kind, document):
    """Proves that the schema itself, without the door, refuses these: an editor shows them while they are typed."""
    assert not validators[kind].is_valid(document)
    assert not agree(kind, document, validators[kind])


def test_planned_fields_and_defaults_are_marked():
    """Proves that an editor can tell what does nothing yet, by the table that the doors use."""
    for kind, fields in documented_fields().items():
        text = json.dumps(document_schema(kind))
        assert text.count('"x-readiness": "planned"') == list(fields.values()).count("planned"), kind
    order = document_schema("policy")["properties"]["order"]["properties"]
    assert order["ageing_s"]["default"] == 60
    assert order["backfill"] == {"enum": ["easy", "conservative", "off"], "default": "easy", "x-readiness": "planned"}


def test_the_written_policy_is_good_by_its_schema(validators):
    """Proves that what the product writes of a policy can be published."""
    written = policy.policy_document(policy.DEFAULT_POLICY)
    assert agree("policy", written, validators["policy"])
