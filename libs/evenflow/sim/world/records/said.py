"""What nodes said of members, as it stands on the log: whoever listened may tell it again."""

from __future__ import annotations

from typing import Any

from evenflow.events.contracts.agent import Receipt
from evenflow.events.streams import RUNS
from evenflow.platform.broker.codec import Received, decode
from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.records import DATA


def last_said(log: EmbeddedLog, node: str, kind: str, *, key: str, attempt: int, member: int) -> Received | None:
    """The newest receipt of a type that a node sent about a member of `key`'s attempt; None when it sent none."""
    found: Received | None = None
    for partition in log.topic(RUNS.name).partitions:
        for record in partition.read(partition.start, partition.stable, partition.stable - partition.start):
            if record.kind != DATA or record.key != key.encode():
                continue
            said = decode(record, RUNS)
            if not isinstance(said, Received) or not isinstance(said.body, Receipt) or said.envelope.stamp is None:
                continue
            body: Any = said.body
            about = (said.envelope.stamp.node, str(body.TYPE), body.attempt, body.member)
            found = said if about == (node, kind, attempt, member) else found
    return found
