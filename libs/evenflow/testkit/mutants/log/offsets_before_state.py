"""Breaks rule 5: a round's offsets are committed before what the round made of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from aiokafka.structs import RecordMetadata

from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.transactions import Transactions
from evenflow.testkit.mutants.replacing import replaced

_write = Transactions.write


async def _in_two(
    self: Transactions, number: int, records: Sequence[Encoded], partitions: Sequence[int | None]
) -> list[RecordMetadata]:
    first = await _write(self, number, records[-1:], partitions[-1:])
    rest = await _write(self, number, records[:-1], partitions[:-1])
    return [*rest, *first]


def with_offsets_before_state() -> AbstractContextManager[None]:
    """Rounds in two transactions, offsets first, while entered."""
    return replaced(Transactions, "write", _in_two)
