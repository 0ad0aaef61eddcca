"""The gate between what was released and what a contract says now."""

from enum import StrEnum
from typing import Annotated, ClassVar

import pytest
from pydantic import Field

from evenflow.core.errors import Refused
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Id, Text
from evenflow.events.schema.files import check, write
from evenflow.events.schema.released import Released

NAME = "budget.changed"


class Word(StrEnum):
    """Two words."""

    ONE = "one"
    TWO = "two"


class Fewer(StrEnum):
    """One word."""

    ONE = "one"


class More(StrEnum):
    """Three words."""

    ZERO = "zero"
    ONE = "one"
    TWO = "two"


def contract(major=1, defaults=None, **fields):
    """A contract of the given fields."""
    body = {"TYPE": EventType.BUDGET_CHANGED, "MAJOR": major, **(defaults or {})}
    body["__annotations__"] = {"TYPE": ClassVar, "MAJOR": ClassVar[int], **fields}
    body["__doc__"] = "A body."
    return type("BudgetChanged", (Contract,), body)


RELEASED = contract(queue=Id, spent=Count, word=Word, note=Text, defaults={"note": ""})


@pytest.fixture
def tree(tmp_path):
    write(tmp_path, {NAME: RELEASED})
    return tmp_path


def files(tree):
    return {path.relative_to(tree).as_posix(): path.read_text() for path in tree.rglob("*") if path.is_file()}


def revisions(tree, major=1):
    return [form.revision for form in Released(tree / "schemas").revisions(NAME, major)]


def test_writing_twice_changes_nothing(tree):
    """Proves that what is written depends on the contracts alone."""
    before = files(tree)
    assert write(tree, {NAME: RELEASED}) == []
    assert files(tree) == before
    assert [problem for problem in check(tree, {NAME: RELEASED}) if "/examples/" not in problem] == []


ACCEPTED = {
    "an optional field": contract(
        queue=Id, spent=Count, word=Word, note=Text, more=Count, defaults={"note": "", "more": 0}
    ),
    "an optional part": contract(
        queue=Id, spent=Count, word=Word, note=Text, more=Count | None, defaults={"note": "", "more": None}
    ),
    "another order": contract(spent=Count, queue=Id, word=Word, note=Text, defaults={"note": ""}),
    "without an optional field": contract(queue=Id, spent=Count, word=Word),
}


@pytest.mark.parametrize("changed", ACCEPTED.values(), ids=ACCEPTED)
def test_what_both_sides_can_read_becomes_a_new_revision(tree, changed):
    """Proves that a compatible change gets an id of its own and leaves the released form as it was."""
    before = files(tree)
    problems = check(tree, {NAME: changed})
    assert [problem for problem in problems if "r2.avsc: is missing" in problem], problems
    write(tree, {NAME: changed})
    first = f"schemas/avro/{NAME}.v1.r1.avsc"
    assert files(tree)[first] == before[first]
    assert revisions(tree) == [2, 1]
    assert sorted(form.id for form in Released(tree / "schemas").all()) == [1, 2]


SAME_BYTES = {
    "a new word": contract(queue=Id, spent=Count, word=More, note=Text, defaults={"note": ""}),
    "another default": contract(queue=Id, spent=Count, word=Word, note=Text, defaults={"note": "none"}),
    "a wider bound": contract(
        queue=Id, spent=Annotated[int, Field(ge=-1, strict=True)], word=Word, note=Text, defaults={"note": ""}
    ),
}


@pytest.mark.parametrize("changed", SAME_BYTES.values(), ids=SAME_BYTES)
def test_a_change_that_leaves_the_bytes_alone_keeps_its_id(tree, changed):
    """Proves that defaults, bounds and words may widen without a new form on the wire."""
    write(tree, {NAME: changed})
    assert revisions(tree) == [1]


REFUSED = {
    "a required field": contract(queue=Id, spent=Count, word=Word, note=Text, more=Count, defaults={"note": ""}),
    "a renamed field": contract(queue=Id, used=Count, word=Word, note=Text, defaults={"note": ""}),
    "a removed field": contract(queue=Id, word=Word, note=Text, defaults={"note": ""}),
    "another type": contract(queue=Id, spent=Text, word=Word, note=Text, defaults={"note": ""}),
    "a default taken away": contract(queue=Id, spent=Count, word=Word, note=Text),
    "a word less": contract(queue=Id, spent=Count, word=Fewer, note=Text, defaults={"note": ""}),
    "a tighter bound": contract(
        queue=Id, spent=Annotated[int, Field(ge=0, le=9, strict=True)], word=Word, note=Text, defaults={"note": ""}
    ),
    "a pattern where text was free": contract(queue=Id, spent=Count, word=Word, note=Id, defaults={"note": "x"}),
}


@pytest.mark.parametrize("changed", REFUSED.values(), ids=REFUSED)
def test_what_breaks_a_reader_or_a_record_is_refused(tree, changed):
    """Proves that such a change stops the check, and that writing refuses it and touches no file."""
    before = files(tree)
    assert any("new MAJOR" in problem for problem in check(tree, {NAME: changed}))
    with pytest.raises(Refused, match="MAJOR"):
        write(tree, {NAME: changed})
    assert files(tree) == before


def test_a_new_major_may_say_anything_and_the_old_one_stays(tree):
    """Proves the way out: records of the old version keep their schema, both JSON and Avro."""
    before = files(tree)
    write(tree, {NAME: contract(2, total=Text)})
    after = files(tree)
    for name in (f"schemas/json/{NAME}.v1.schema.json", f"schemas/avro/{NAME}.v1.r1.avsc"):
        assert after[name] == before[name]
    assert revisions(tree, 2) == [1]
    assert [one for one in check(tree, {NAME: contract(2, total=Text)}) if "/examples/" not in one] == []


def test_a_later_revision_must_suit_every_earlier_one(tree):
    """Proves that a type can't change in two steps that each look harmless."""
    write(tree, {NAME: contract(queue=Id, spent=Count, word=Word)})
    back = contract(queue=Id, spent=Count, word=Word, note=Count, defaults={"note": 0})
    assert any("r1.avsc" in problem and "MAJOR" in problem for problem in check(tree, {NAME: back}))


@pytest.mark.parametrize(
    "name",
    [
        f"schemas/json/{NAME}.v1.schema.json",
        f"schemas/avro/{NAME}.v1.r1.avsc",
        "schemas/documents/task.schema.json",
        "schemas/asyncapi.json",
        "docs/events.md",
        "docs/closed-lists.md",
    ],
)
def test_an_edited_or_missing_file_is_named(tree, name):
    """Proves that no generated file can drift unseen."""
    path = tree / name
    path.write_text(path.read_text() + " ")
    assert any(problem.startswith(f"{name}: ") for problem in check(tree, {NAME: RELEASED}))
    path.unlink()
    assert any(name in problem and "missing" in problem for problem in check(tree, {NAME: RELEASED}))


def test_a_file_of_no_contract_is_named_and_taken_away(tree):
    """Proves that a renamed type leaves nothing behind that others could build on."""
    for name in ("json/old.thing.v1.schema.json", "documents/old.schema.json", "avro/old.thing.v1.r1.avsc"):
        (tree / "schemas" / name).write_text("{}\n")
        assert any(name in problem for problem in check(tree, {NAME: RELEASED}))
        assert write(tree, {NAME: RELEASED}) == [f"schemas/{name}"]


def test_a_released_type_can_not_vanish(tree):
    """Proves that records on the log keep a reader."""
    assert any("no contract knows it" in problem for problem in check(tree, {}))


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ('{"avro/a.v1.r1.avsc": 1, "avro/b.v1.r1.avsc": 1}', "stands twice"),
        ('{"avro/a.v1.r1.avsc": 0}', "whole id"),
        ('{"avro/a.v1.r1.avsc": "1"}', "whole id"),
        ('{"avro/../a.v1.r1.avsc": 1}', "must be <type>"),
        ('{"avro/c.v1.r1.avsc": 1}', "is missing"),
        ('{"avro/a.v1.r2.avsc": 1}', "lacks a revision"),
        ('{"avro/d.v1.r1.avsc": 1}', "is no Avro schema"),
        ("[]", "must be a map"),
        ("{", "is not JSON"),
    ],
)
def test_a_broken_table_of_ids_is_refused_and_named(tmp_path, ids, problem):
    """Proves that an id never means two things and a known one never means nothing."""
    (tmp_path / "schemas" / "avro").mkdir(parents=True)
    for name in ("a.v1.r1", "b.v1.r1", "a.v1.r2", "d.v1.r1"):
        text = '{"type": "record", "name": "A", "fields": []}' if name[0] != "d" else '{"type": "recor"}'
        (tmp_path / "schemas" / "avro" / f"{name}.avsc").write_text(text)
    (tmp_path / "schemas" / "ids.json").write_text(ids)
    with pytest.raises(Refused, match=problem):
        Released(tmp_path / "schemas")
    assert any(problem in one for one in check(tmp_path, {NAME: RELEASED}))
