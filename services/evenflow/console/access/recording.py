"""Changes that came to nothing leave a line of the record too: who tried what, from where, and why it was refused.

What is done leaves its line together with the fact (`Console.publish`). The rest is bounded in rate, for anybody can
ask for what is refused; how many lines were left out is counted and logged.
"""

from __future__ import annotations

from typing import Any, Final

from evenflow.console.access.admission import tenant_of
from evenflow.console.access.caller import UNKNOWN, Caller
from evenflow.console.access.rights import meant
from evenflow.console.service import Console
from evenflow.core.errors import EvenflowError

MINUTE_MS: Final = 60_000
NOTHING_TO_DO: Final = "nothing to do"
SHOWN_MAX: Final = 500
ACTION_MAX: Final = 100


class Recording:
    """Writes the lines of changes that left none of their own."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._minute = 0
        self._counts = {True: 0, False: 0}
        self.left_out_count = 0

    async def ended(self, scope: dict[str, Any], caller: Caller, status: int) -> None:
        """A request that may change something is answered; the answer stands whatever becomes of its line."""
        if caller.recorded:
            return
        console = self._console
        minute = console.runtime.clock.monotonic_ms() // MINUTE_MS
        if minute != self._minute:
            self._minute, self._counts = minute, {True: 0, False: 0}
        # Strangers have a bound of their own, so that none of them can crowd out what known callers try.
        known, lines_max = caller.role is not None, console.settings.refusals_recorded_per_minute_max
        self._counts[known] += 1
        if self._counts[known] > lines_max:
            self.left_out_count += 1
            if self._counts[known] == lines_max + 1:
                console.runtime.log.warning("refused changes not recorded one by one", way_out="See /metrics.")
            return
        action, subject = named(scope)
        refusal = caller.refusal
        parameters: dict[str, Any] = {"status": status}
        if refusal is not None and refusal.path:
            parameters["path"] = refusal.path[:SHOWN_MAX]
        outcome = f"refused: {refusal.code if refusal is not None else status}" if status >= 400 else NOTHING_TO_DO
        try:
            await console.publish(action=action, subject=subject, parameters=parameters, who=caller, outcome=outcome)
        except EvenflowError as error:
            self.left_out_count += 1
            console.runtime.log.warning("a refused change was not recorded", problem=str(error))


def named(scope: dict[str, Any]) -> tuple[str, str]:
    """The action and the subject that a request meant; by method and path where the table has no such change."""
    method, path = str(scope.get("method", "")), str(scope.get("path", ""))
    right, parameters = meant(method, path)
    if right is not None and right.action:
        action, subject = right.action, right.subject_of(parameters, tenant_of(scope))
    else:
        action, subject = method.lower() or UNKNOWN, path
    return action[:ACTION_MAX], subject[:SHOWN_MAX].encode("utf-8", "replace").decode()
