"""What a group left unread: records, not the markers that transactions leave behind their last one."""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.platform.broker.embedded.log import EmbeddedLog
from evenflow.platform.broker.embedded.records import DATA


def unread(log: EmbeddedLog, before_ms: int) -> Iterator[str]:
    """A line per partition on which a group has not committed a record written before a moment of the log's clock."""
    for group in log.groups.names():
        for key, lag in log.lag(group).items():
            partition = log.partition(key)
            committed = log.committed(group, key) or 0
            left = [
                record
                for record in partition.read(committed, partition.stable, lag)
                if record.kind == DATA and record.timestamp < before_ms
            ]
            if left:
                yield f"{group} left {len(left)} records of {key.topic}/{key.partition} unread, from {left[0].offset}"
