"""Checkpoint's settings, with limits."""

from __future__ import annotations

from pydantic import Field

from evenflow.platform.settings import Settings


class CheckpointSettings(Settings):
    """Counts and periods."""

    kept_count: int = Field(default=3, ge=1, le=100)
    prune_period_ms: int = Field(default=10_000, ge=100, le=3_600_000)
    swept_count_max: int = Field(default=100, ge=1, le=10_000)
