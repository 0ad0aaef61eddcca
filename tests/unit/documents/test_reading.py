"""Bytes become documents strictly: bounds, doubles, tags and numbers."""

import json
import math

import pytest

from evenflow.events.documents.quantities import LongNumber
from evenflow.events.documents.reading import BYTES_MAX, DEPTH_MAX, Unreadable, read_document, read_json


def read(text):
    return read_document(text, source="file.yaml")


def refused(reading, data):
    with pytest.raises(Unreadable) as caught:
        reading(data, source="x")
    return caught.value


def test_plain_yaml_scalars_mean_what_they_mean_in_json():
    """No scalar of YAML's own becomes a number, a truth or a date: yes, 0x1, 1_000, 012, .5, ~ are text."""
    text = (
        "a: null\nb: true\nc: false\nd: 12\ne: -0.5\nf: 1e3\n"
        "g: [yes, no, on, off, 0x1, 1_000, 012, .5, 5., ~, .nan, .inf, True, NULL, 2026-03-28, '12', 1:30, +1]\n"
    )
    document = read(text)
    assert [document[key] for key in "abcdef"] == [None, True, False, 12, -0.5, 1000.0]
    words = "yes no on off 0x1 1_000 012 .5 5. ~ .nan .inf True NULL 2026-03-28 12 1:30 +1"
    assert " ".join(document["g"]) == words


def test_nan_and_infinities_are_numbers_so_that_their_field_refuses_them():
    """Both readers give a float, never a text that a lenient field might take."""
    for document in (
        read("a: [NaN, Infinity, -Infinity, +Infinity]"),
        read_json(b'{"a": [NaN, Infinity, -Infinity]}', source="x"),
    ):
        assert math.isnan(document["a"][0])
        assert document["a"][1:3] == [math.inf, -math.inf]


def test_a_minus_before_zero_is_not_lost():
    """-0 as an integer would drop its sign and pass as zero; it stays a signed number, in YAML and in JSON."""
    for value in (read("a: -0")["a"], read_json(b"-0", source="x"), read_json(b"-0.0", source="x")):
        assert str(value) == "-0.0"


def test_an_empty_value_is_null_and_not_empty_text():
    """`name:` with nothing behind it must not pass for an empty name."""
    assert read("name:\n") == {"name": None}


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "twice"),
        ("a: &x 1\n", 1, 4, "anchor"),
        ("a: 1\nb: *x\n", 2, 4, "alias"),
        ("a: !!int '3'\n", 1, 4, "tag"),
        ("a: !!python/object/apply:os.system [ls]\n", 1, 4, "tag"),
        ("a: 1\n---\nb: 2\n", 2, 1, "more than one"),
        ("? [a, b]\n: 1\n", 1, 3, "key must be text"),
        ("a: [1, 2\nb: 3\n", 2, 2, "not YAML"),
        ("%YAML 1.1\n---\na: 1\n", 1, 1, "directive"),
        ("a: " + "9" * 100, 1, 4, "100 characters"),
    ],
)
def test_what_yaml_leaves_to_chance_is_refused_with_line_and_column(text, line, column, word):
    """Every error of a file says where it is."""
    error = refused(read_document, text)
    assert (error.line, error.column) == (line, column)
    assert word in str(error)
    assert str(error).startswith(f"x:{line}:{column}: ")


@pytest.mark.parametrize("reading", [read_document, read_json])
def test_a_key_given_twice_is_refused_in_json(reading):
    """Two readers of one body must never see two values."""
    assert "twice" in str(refused(reading, b'{"id": "a", "x": {"id": "b", "id": "c"}}'))


def test_json_with_tabs_and_flow_yaml_are_both_read():
    """A file that begins with a brace may be either."""
    assert read('{\n\t"a":\t1}') == {"a": 1}
    assert read("{a: 1, b: [x, y]}") == {"a": 1, "b": ["x", "y"]}


@pytest.mark.parametrize("reading", [read_document, read_json])
@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b'{"a": ' + b"7" * 1_000_000 + b"}", "1000000 characters"),
        (b'{"a": 1' + b"0" * 500_000 + b".5}", "characters"),
        (b'{"a": "' + b"x" * 10_000_000 + b'"}', "at most"),
        (b'{"a": "\xff\xfe"}', "UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "UTF-8"),
    ],
)
def test_hostile_bytes_end_in_a_clear_error(reading, data, word):
    """Depth, digits, size and encoding are bounded before anything is built."""
    assert word in str(refused(reading, data))


def test_empty_bytes_are_refused():
    """Nothing is no document."""
    for reading in (read_document, read_json):
        refused(reading, b"")
        refused(reading, b"  \n")


def test_brackets_inside_text_do_not_count_as_depth():
    """Only nesting is bounded, not what text holds."""
    value = ["[{" * 200, '\\"[[[[', "x"]
    assert read_json(json.dumps(value), source="x") == value


def test_text_that_never_ends_is_refused_at_once():
    """Looking for the end of a text from every quote would take hours; each character is looked at once."""
    error = refused(read_json, b"[" * 40 + b'"' + b'\\"' * 500_000)
    assert "nested" in str(error)
    assert "not JSON" in str(refused(read_json, b"[{" * 10 + b"[" * 12 + b'"' + b'\\"[' * 100_000))


def test_the_deepest_allowed_nesting_is_read_and_one_more_is_not():
    """The bound is exact for JSON and YAML."""
    for depth in (DEPTH_MAX, DEPTH_MAX + 1):
        text = "[" * depth + "]" * depth
        flow = "{a: " + "[" * (depth - 1) + "]" * (depth - 1) + "}"
        if depth == DEPTH_MAX:
            read_json(text, source="x")
            read(text)
            read(flow)
        else:
            refused(read_json, text)
            refused(read_document, text)
            refused(read_document, flow)


def test_a_document_of_the_largest_size_is_read():
    """The bound on size is exact."""
    text = '"' + "a" * (BYTES_MAX - 2) + '"'
    assert len(read_json(text, source="x")) == BYTES_MAX - 2
    refused(read_json, text + " ")


@pytest.mark.parametrize(
    "text", ["0.1000000000000000000001", "1e-999", "1e-99999999999999999999999", "12345678901234567.5"]
)
def test_a_number_that_no_float_keeps_stays_as_it_was_written(text):
    """It must not be rounded into a number that a field would take."""
    for value in (read(f"a: {text}")["a"], read_json(text, source="x")):
        assert isinstance(value, LongNumber)
        assert repr(value) == text


@pytest.mark.parametrize(
    "text", ["0.1", "0.25000000000000000000", "1e3", "0.0", "1E-3", "100.0", "1e22", "1e400", "0e5"]
)
def test_a_number_that_a_float_keeps_is_a_float(text):
    """Trailing zeros and exponents alone do not make a number long."""
    assert type(read_json(text, source="x")) is float


def test_a_byte_order_mark_before_a_file_is_skipped():
    """Some editors write one; on the wire nobody does."""
    assert read_document(b"\xef\xbb\xbfa: 1\n", source="x") == {"a": 1}
    refused(read_json, b'\xef\xbb\xbf{"a": 1}')


def test_half_a_surrogate_pair_in_a_file_is_refused():
    """It is no text in any encoding."""
    refused(read_document, "a: \ud800")
