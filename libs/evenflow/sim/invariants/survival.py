"""INV10 survival: no service process exits because of input, and nothing is left unhandled on the loop.

The world says which processes ended untold; repeatability (INV11) is judged by running a file twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from evenflow.sim.observation.model import Observation
from evenflow.sim.observation.record import Seen


class Survival:
    """Turns the ends that the world reports into violations, unless they were part of a take-over."""

    name = "INV10"

    def __init__(self) -> None:
        self._reported: list[str] = []

    def ended_untold(self, process: str, why: str) -> None:
        """A service process ended although nobody asked it to."""
        self._reported.append(f"{process} ended untold: {why}")

    def after(self, model: Observation, record: Seen) -> Iterator[str]:
        """What was reported since."""
        del model, record
        reported, self._reported = self._reported, []
        yield from reported

    def finish(self, model: Observation, *, settled: bool) -> Iterator[str]:
        """What was reported since."""
        del model, settled
        yield from self._reported
