"""Being told to end: the first signal sets an event, the second one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Final

TOLD: Final = (signal.SIGINT, signal.SIGTERM)
EXIT_AT_ONCE: Final = 130


def until_told() -> asyncio.Event:
    """An event of the running loop that SIGINT and SIGTERM set."""
    told = asyncio.Event()

    def tell() -> None:
        if told.is_set():
            os._exit(EXIT_AT_ONCE)
        told.set()

    loop = asyncio.get_running_loop()
    for number in TOLD:
        loop.add_signal_handler(number, tell)
    return told
