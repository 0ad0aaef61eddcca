"""Forms of readers and the patterns made of them."""

import re

import pytest

from evenflow.core.units import MICRO, QUANTITY_MAX, decimal_text
from evenflow.events.documents import forms, network, node, policy, queue, task_specification
from evenflow.events.schema import document_schema as schema

TABLES = {
    "task": task_specification.FIELDS,
    **{f"task.{name}": table for name, table in task_specification.PARTS.items()},
    "node": node.FIELDS,
    "node.devices": node.DEVICE_FIELDS,
    "site": network.SITE_FIELDS,
    "link": network.LINK_FIELDS,
    "dataset": network.DATASET_FIELDS,
    "queue": queue.FIELDS,
    "queue.limit": queue.LIMIT_FIELDS,
    **{f"policy.{name}": table for name, table in policy.SECTIONS.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_every_reader_says_what_it_takes(name):
    """Proves that no field can be read without standing in a published schema."""
    assert all(forms.form_of(reader) for reader in TABLES[name].values())


def test_a_reader_without_a_form_is_refused():
    """Proves that forgetting the form fails at generation, and does not publish a schema that takes anything."""
    with pytest.raises(TypeError, match="no form"):
        forms.form_of(lambda value: value)


@pytest.mark.parametrize("bound", [1, 2, 9, 10, 11, 16, 90, 99, 100, 101, 360, 999, 1000, 1001])
def test_whole_numbers_below_a_bound_are_exactly_those(bound):
    """Proves that the pattern of a range neither misses nor adds a number."""
    pattern = re.compile(schema._below(bound) + r"\Z")
    assert [n for n in range(bound + 200) if pattern.match(str(n))] == list(range(bound))


@pytest.mark.parametrize(
    ("scale", "low", "high"), [(1000, 1, 1000), (1000, 0, 2000), (MICRO, MICRO, 16 * MICRO), (1000, 1, 86_400_000)]
)
def test_decimal_text_keeps_both_ends_of_its_range(scale, low, high):
    """Proves that the first and last step pass, the next ones do not, and zeros behind the last place do no harm."""
    text = schema._decimal_text(scale, low, high)

    def takes(value):
        barred = text.get("not", {"pattern": "(?!)"})["pattern"]
        return bool(re.match(text["pattern"].replace("$", r"\Z"), value)) and not re.search(barred, value)

    assert takes(decimal_text(low, scale))
    assert takes(decimal_text(high, scale))
    assert takes(decimal_text(high, scale) + ".000000000")
    assert not takes(decimal_text(high + 1, scale))
    assert not takes(decimal_text(low - 1, scale))
    assert not takes("00")
    assert not takes("1.")
    assert not takes(f"0.{'0' * len(str(scale))}1")


def test_a_size_may_have_as_many_places_as_give_whole_bytes():
    """Proves that decimal units are exact in the schema too: 1.001kB is 1,001 bytes, 1.0001kB is none."""
    size = schema._amount(forms.Amount({"B": 1, "kB": 1000, "KiB": 1024}, 0, QUANTITY_MAX))
    pattern = re.compile(size["anyOf"][1]["pattern"].replace("$", r"\Z"))
    good = ["0", "7", "7.0", "1B", "1.0 B", "1.001kB", "1.0010kB", "1.5KiB"]
    assert [
        one for one in [*good, "1.5", "1.5B", "1.0001kB", "1kb", "1 k", "-1B", "01B", "1  B"] if pattern.match(one)
    ] == good
