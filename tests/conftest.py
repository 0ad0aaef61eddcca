"""What every suite may ask for: real servers, found or started by the testkit; and processes that hear an interrupt."""

from __future__ import annotations

import contextlib
import signal

pytest_plugins = ("evenflow.testkit.servers.plugin",)

# A shell that runs the tests in the background lets them ignore interrupts, and so would every process they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with contextlib.suppress(ValueError):  # only the main thread may say so
        signal.signal(signal.SIGINT, signal.default_int_handler)
