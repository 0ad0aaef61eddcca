"""A run's output on its way to the store: chunks that never change, whatever happens to file and store."""

from __future__ import annotations

import pytest

from evenflow.agent.executors import output_log
from evenflow.agent.executors.output_log import OutputLog
from evenflow.agent.executors.run_folder import Noted
from evenflow.agent.ports import Launch
from evenflow.core.demand.task import Task
from evenflow.platform.stores.memory import MemoryObjects


class Hand:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.ms = 1_000

    def monotonic_ms(self) -> int:
        return self.ms


class Quiet:
    def debug(self, event: str, **fields: object) -> None:
        pass


@pytest.fixture
def sender(tmp_path):
    made = type("Sender", (), {})()
    made.objects, made.clock, made.noted, made.path = MemoryObjects(), Hand(), Noted(), tmp_path / "output.log"
    launch = Launch("k", "default", Task("default", "t1"), 2, 3, 4, (), 1, 1)

    def again() -> OutputLog:
        return OutputLog(made.path, launch, made.noted, clock=made.clock, objects=made.objects, log=Quiet())

    async def text() -> bytes:
        return b"".join([await made.objects.get(p) for p in await made.objects.paths("logs/default/t1/a2/m3/")])

    def write(data: bytes) -> None:
        with made.path.open("ab") as file:
            file.write(data)

    made.again, made.text, made.write, made.log = again, text, write, again()
    return made


async def test_chunks_in_order_are_the_output_over_a_restart(sender):
    """Proves that nothing is sent twice or left out when another agent goes on."""
    sender.write(b"one\n")
    await sender.log.send()
    sender.write(b"two\n")
    sender.log = sender.again()
    await sender.log.send()
    assert await sender.text() == b"one\ntwo\n"
    assert sender.noted.sent == 8


async def test_small_pieces_wait_for_their_time_and_the_last_does_not(sender):
    """Proves that a slow printer makes few chunks, and that the end is never held back."""
    sender.write(b"a")
    await sender.log.send()
    sender.write(b"b")
    await sender.log.send()
    assert await sender.text() == b"a"
    sender.clock.ms += 1_000
    await sender.log.send()
    assert await sender.text() == b"ab"
    sender.write(b"c")
    await sender.log.send(last=True)
    assert await sender.text() == b"abc"


async def test_a_store_that_is_away_loses_nothing(sender):
    """Proves that output waits in the file until the store answers."""
    sender.objects.faults.down()
    sender.write(b"one\n")
    await sender.log.send()
    sender.objects.faults.up()
    await sender.log.send()
    assert await sender.text() == b"one\n"


async def test_a_full_file_is_emptied_and_the_offsets_go_on(sender, monkeypatch):
    """Proves the bound on the node's disk: later output follows at its own offset."""
    monkeypatch.setattr(output_log, "FILE_BYTES_MAX", 10)
    sender.write(b"0123456789")
    await sender.log.send()
    assert sender.path.stat().st_size == 0
    sender.write(b"next")
    await sender.log.send(last=True)
    assert await sender.text() == b"0123456789next"
    assert (await sender.objects.paths("logs/default/t1/a2/m3/"))[-1].endswith("/000000000010")
