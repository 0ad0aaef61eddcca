"""Checkpoint's settings, with limits."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CheckpointSettings(BaseModel):
    """Counts and periods."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kept_count: int = Field(default=3, ge=1, le=100)
    prune_period_ms: int = Field(default=10_000, ge=100, le=3_600_000)
    task_count_max: int = Field(default=500_000, ge=1, le=10_000_000)
