"""Settings of placement: units in their names, a limit on every number."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evenflow.platform.settings import Settings

Milliseconds = Annotated[int, Field(ge=1, le=86_400_000)]


class PlacementSettings(Settings):
    """How one placement process behaves. The defaults suit one process on a laptop and a real log alike.

    `gather_ms`: wait before a round for more input. `round_limit_ms`: after this a round's fate is unknown and the
    process ends. `start_failures_quarantine`: failed starts in a row that close a node; 0 takes the policy's number.
    `unsigned_submissions`: who may ask something of tasks without a signature: any, only the tenant anonymous, or none.
    A wrong signature is refused always.
    """

    pool: str = Field(default="default", pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")
    session_timeout_ms: Milliseconds = 6_000
    gather_ms: Annotated[int, Field(ge=0, le=1_000)] = 2
    round_records_max: Annotated[int, Field(ge=1, le=100_000)] = 500
    round_demands_max: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    round_limit_ms: Milliseconds = 10_000
    round_period_ms: Milliseconds = 60_000
    fence_limit_ms: Milliseconds = 30_000
    restore_stuck_ms: Milliseconds = 15_000
    snapshot_period_ms: Milliseconds = 60_000
    snapshot_age_max_ms: Annotated[int, Field(ge=1, le=604_800_000)] = 43_200_000
    stop_grace_ms: Milliseconds = 10_000
    stop_stuck_ms: Milliseconds = 60_000
    reasons_period_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 1_000
    reasons_per_round_max: Annotated[int, Field(ge=1, le=100_000)] = 100
    start_failures_quarantine: Annotated[int, Field(ge=0, le=1_000)] = 0
    start_probe_ms: Milliseconds = 600_000
    task_id_retention_ms: Annotated[int, Field(ge=1_000, le=31_536_000_000)] = 86_400_000
    ended_tasks_max: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    replay_window_count: Annotated[int, Field(ge=1, le=65_536)] = 1_024
    signed_receipts_only: bool = True
    unsigned_submissions: Literal["any", "anonymous", "none"] = "any"
