"""What is checked in is what the contracts say today."""

import json

import pytest

from evenflow.events.schema.files import check
from evenflow.events.schema.released import Released
from evenflow.events.types import CONTRACTS
from evenflow.testkit import examples


def test_no_published_file_differs_from_the_contracts(root):
    """Proves that JSON Schema, Avro, AsyncAPI, ids, pages and examples are of this tree; else run make schemas."""
    assert check(root) == []


def test_the_examples_are_those_the_testkit_makes(root):
    """Proves that an example file is neither edited by hand nor left over."""
    wanted = {f"{name}.json": examples.example_text(body) for name, body in examples.examples().items()}
    present = {path.name: path.read_text(encoding="utf-8") for path in (root / examples.FOLDER).iterdir()}
    assert present == wanted


def test_every_type_has_a_wire_form_under_an_id(root):
    """Proves that any contract can be written as Avro by whoever reads ids.json alone."""
    released = Released(root / "schemas")
    assert [name for name, one in CONTRACTS.items() if not released.revisions(name, one.MAJOR)] == []
    ids = json.loads((root / "schemas" / "ids.json").read_text(encoding="utf-8"))
    assert len(set(ids.values())) == len(ids)


@pytest.mark.parametrize("name", sorted(CONTRACTS))
def test_an_example_is_good_by_its_published_schema(root, strict, name):
    """Proves that the schema that others generate code from accepts what the product writes."""
    major = CONTRACTS[name].MAJOR
    schema = json.loads((root / f"schemas/json/{name}.v{major}.schema.json").read_text(encoding="utf-8"))
    strict.check_schema(schema)
    example = json.loads((root / f"schemas/examples/{name}.json").read_text(encoding="utf-8"))
    assert [error.message for error in strict(schema).iter_errors(example)] == []
    assert [error.message for error in strict(schema).iter_errors([])] != []
