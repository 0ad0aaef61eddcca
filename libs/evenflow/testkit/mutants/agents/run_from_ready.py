"""Breaks the seam of start and run: a run counts from its launch, though its start is billed up to its readiness."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.agent.executors.simulated_process import SimulatedProcess
from evenflow.testkit.mutants.replacing import replaced

_run_ms = SimulatedProcess.run_ms


def _from_launch(process: SimulatedProcess, at_ms: int) -> int:
    run_ms = _run_ms(process, at_ms)
    return run_ms + (process.ready_ms or 0) - process.began_ms if run_ms else 0


def without_run_from_ready() -> AbstractContextManager[None]:
    """Starts that are billed twice while entered."""
    return replaced(SimulatedProcess, "run_ms", _from_launch)
