"""One suite for both disks of an agent: memory for simulated nodes, SQLite for real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.agent.journal import Held, Outgoing, Phase
from evenflow.agent.stores import MemoryDisk, SqliteDisk
from evenflow.core.errors import Refused
from evenflow.core.lifecycle.attempt import Wish
from evenflow.events.contracts.placement import AttemptDesired, MemberPlace


def held(task: str = "t1", attempt: int = 1, phase: Phase = Phase.RUNNING) -> Held:
    place = MemberPlace(member=0, node="n1", site="east", cpu_milli=1, memory_bytes=1, disk_bytes=0)
    desired = AttemptDesired(
        tenant="default", task=task, queue="q", pool="main", epoch=1, attempt=attempt, generation=attempt,
        wish=Wish.RUN, place=place, specification={"id": task},
    )  # fmt: skip
    return Held(desired=desired, phase=phase, damaged=("a",))


def record(sequence: int, value: str = "{}") -> Outgoing:
    return Outgoing(
        stream="runs", type="attempt.started", id=f"e{sequence}", key="default/t1", time_ms=1, value=value,
        session="s", sequence=sequence, signature="00",
    )  # fmt: skip


class Opened:
    """A disk that can be closed and opened again."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.disk = MemoryDisk() if path is None else SqliteDisk(path)

    def again(self):
        if self.path is not None:
            self.disk.close()
            self.disk = SqliteDisk(self.path)
        return self.disk


@pytest.fixture(params=["memory", "sqlite"])
def opened(request, tmp_path):
    made = Opened(None if request.param == "memory" else tmp_path / "agent.db")
    yield made
    made.disk.close()


def test_rows_and_records_survive_a_restart(opened):
    """Proves that what a commit wrote is there for the next agent, exactly as it was."""
    opened.disk.remember_session("s1")
    opened.disk.commit(held=[held()], records=[record(opened.disk.reserve_sequence())])
    disk = opened.again()
    assert disk.members() == [held()]
    assert disk.pending(10, 10_000) == [record(1)]
    assert (disk.session(), disk.newest()) == ("s1", {"default/t1/0": 1})


def test_sequences_only_grow_even_over_restarts_and_empty_outboxes(opened):
    """Proves that no number is ever given out twice, also those of things that were not kept."""
    given = [opened.disk.reserve_sequence() for _ in range(3)]
    opened.disk.commit(records=[record(opened.disk.reserve_sequence())])
    opened.disk.acknowledge(4)
    later = [opened.again().reserve_sequence() for _ in range(2)]
    assert given == [1, 2, 3]
    assert 4 < later[0] < later[1]


def test_pending_records_come_in_order_and_within_bounds(opened):
    """Proves batches: oldest first, bounded by count and bytes, never empty while something waits."""
    opened.disk.commit(records=[record(number, "x" * 100) for number in (1, 2, 3)])
    assert [one.sequence for one in opened.disk.pending(2, 10_000)] == [1, 2]
    assert [one.sequence for one in opened.disk.pending(9, 250)] == [1, 2]
    assert [one.sequence for one in opened.disk.pending(9, 1)] == [1]
    opened.disk.acknowledge(2)
    assert (opened.disk.pending_count(), opened.disk.pending(9, 9_999)) == (1, [record(3, "x" * 100)])


def test_a_forgotten_member_leaves_its_highest_attempt_behind(opened):
    """Proves that an attempt which is over can never start again for want of memory."""
    opened.disk.commit(held=[held(attempt=3)])
    opened.disk.commit(forget=[held(attempt=3).key])
    opened.disk.commit(held=[held(attempt=2)], forget=[held(attempt=2).key])
    disk = opened.again()
    assert (disk.members(), disk.newest()) == ([], {"default/t1/0": 3})


def test_a_second_agent_of_the_same_folder_is_refused(tmp_path):
    """Proves that two agents never share one journal."""
    disk = SqliteDisk(tmp_path / "agent.db")
    with pytest.raises(Refused, match="in use by another agent"):
        SqliteDisk(tmp_path / "agent.db", lock_timeout_s=0.0)
    disk.close()


def test_a_half_done_commit_leaves_nothing(tmp_path):
    """Proves that rows and records are written together or not at all."""
    disk = SqliteDisk(tmp_path / "agent.db")
    disk.commit(records=[record(1)])
    with pytest.raises(Exception, match="UNIQUE"):
        disk.commit(held=[held()], records=[record(2), record(1)])
    assert (disk.members(), disk.pending_count()) == ([], 1)
    disk.close()
