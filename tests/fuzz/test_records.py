"""A fixed part of the fuzzing of every topic: parked or applied, nobody gone, nothing unread, no mark of the parked."""

from __future__ import annotations

import pytest

from evenflow.events.streams import topics
from evenflow.testkit.fuzz.course import fuzz_records, left_marks, shrunk
from evenflow.testkit.fuzz.records import Thrown, records_of
from evenflow.testkit.fuzz.spoiling import SPOILS

COUNT = 500


def test_generated_records_of_every_topic_are_parked_or_applied_and_leave_no_mark():
    """Proves for a fixed seed what `make fuzz` proves for many more: see `testkit.fuzz.course` for what must hold."""
    said: list[str] = []
    figures = fuzz_records(COUNT, 1, said.append)
    assert not figures.problems, "\n".join([*figures.problems, *said])
    assert figures.thrown >= COUNT
    assert [name for name, one in figures.topics.items() if not one.thrown] == []
    parking = [one for name, one in figures.topics.items() if one.parked]
    assert len(parking) >= 19
    assert figures.compared > COUNT // 6


def test_the_same_seed_gives_the_same_records():
    """Proves that what was found can be found again."""
    stream = topics()[0]
    assert records_of(stream, 40, 7) == records_of(stream, 40, 7)
    assert records_of(stream, 40, 7) != records_of(stream, 40, 8)


def test_every_way_of_spoiling_is_used():
    """Proves that no kind of bad record is on the list and never thrown."""
    used = {one.how for stream in topics()[:8] for one in records_of(stream, 400, 3)}
    assert {spoil.__name__.replace("_", " ") for spoil in SPOILS} | {"valid"} <= used


def test_a_record_that_leaves_a_mark_is_found():
    """Proves that the comparison of states can fail: a good task is no record without a mark."""
    from evenflow.testkit.fuzz.course import _state_of_nothing
    from evenflow.testkit.fuzz.world import in_world

    headers = dict(records_of(topics()[0], 1, 1)[0].headers) | {
        "ce_type": b"task.submitted",
        "ce_dataschema": b"urn:evenflow:task.submitted:1",
    }
    task = Thrown(topics()[0].name, b"default/marked", b'{"id": "marked"}', tuple(headers.items()), "good")
    marks, _ = left_marks([task], 1, in_world(_state_of_nothing, 1))
    assert "placement model" in marks
    assert "console tasks" in marks


@pytest.mark.parametrize(("guilty", "least"), [((17,), 1), ((3, 88), 2), (tuple(range(100)), 1)])
def test_few_records_are_left_when_few_are_guilty(guilty, least):
    """Proves that shrinking keeps what fails, and nearly nothing else."""
    all_of_them = len(guilty) < 50

    def fails(some):
        return all(one in some for one in guilty) if all_of_them else any(one in some for one in guilty)

    kept = shrunk(list(range(100)), fails)
    assert fails(kept)
    assert least <= len(kept) <= 12
