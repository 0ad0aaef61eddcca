"""Breaks R69: any text is an id."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager

from evenflow.events.documents import fields
from evenflow.testkit.mutants.replacing import replaced


def with_loose_ids() -> AbstractContextManager[None]:
    """Ids without a grammar while entered."""
    return replaced(fields, "_ID", re.compile(r"(?s).+\Z"))
