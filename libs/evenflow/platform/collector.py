"""Python's cyclic collector in a long-running process.

Services hold large tables that live long, and make many small values that die at once without cycles. The default
rules scan the tables over and over for nothing, and stop the process the longer the more it holds. Here the young are
looked at in small groups; what survives is set aside from every scan, until as much was set aside anew as there was at
the last full pass: then everything is looked at once. The cost for each value stays the same however many there are.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any, Final

#: Values made and not freed between two looks at the young: a tenth of a millisecond to look at, as much for each value
#: as in larger groups, and in a quiet process cycles do not wait for many minutes with megabytes in them.
YOUNG: Final = 5_000
#: Values set aside before the first full pass.
FULL_PASS_MIN: Final = 4_000_000
#: The older generations stay empty, since survivors are set aside.
NEVER: Final = 1_000_000


class _Survivors:
    """Sets survivors aside after each look at the young. `kept`: values at the last full pass; `fresh`: since then."""

    def __init__(self) -> None:
        self.kept = self.fresh = 0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase != "stop" or info["generation"] != 0:
            return
        gc.freeze()
        self.fresh += YOUNG
        if self.fresh >= max(FULL_PASS_MIN, self.kept):
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # Nobody runs here for long; the next look at the young asks again.
            self.fresh = 0
            loop.call_soon(self.look_at_all)  # A collection can't be begun within another.

    def look_at_all(self) -> None:
        """The full pass."""
        look_at_all()
        self.kept = gc.get_freeze_count()


def look_at_all() -> None:
    """Look at every value, those set aside too, and set aside what is left."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def tune_collector() -> None:
    """Take the collector over, once at a process's start; what is loaded by then is left out of the scans."""
    look_at_all()
    gc.set_threshold(YOUNG, NEVER, NEVER)
    if not any(isinstance(callback, _Survivors) for callback in gc.callbacks):
        gc.callbacks.append(_Survivors())
