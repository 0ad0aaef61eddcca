"""Giving the event loop away for one turn, on any loop and without a timer."""

from __future__ import annotations

import types
from collections.abc import Generator

YIELD_EVERY = 16
"""A poll that has data ready gives the loop away at least every so many calls."""


@types.coroutine
def give_way() -> Generator[None, None, None]:
    """Let everything that is ready run once."""
    yield
