"""Python's cyclic collector in a long-running process.

Services hold large tables that live long, and make many small values that die at once without cycles. The default
thresholds then scan the tables over and over for nothing; these look rarely at the young and hardly ever at the old.
"""

from __future__ import annotations

import gc
from typing import Final

YOUNG: Final = 20_000
MIDDLE: Final = 20
OLD: Final = 50


def tune_collector() -> None:
    """Set the thresholds once, at a process's start, and leave what is loaded by then out of every scan."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
