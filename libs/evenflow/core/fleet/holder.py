"""Who holds capacity or quota: one member of one attempt of one task."""

from __future__ import annotations

from typing import NamedTuple


class Holder(NamedTuple):
    """The name under which something is held, so that giving it back twice changes nothing."""

    task_key: str
    attempt: int
    member: int
