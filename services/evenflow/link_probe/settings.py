"""Link-probe's settings, with limits."""

from __future__ import annotations

from pydantic import Field

from evenflow.platform.settings import Settings


class LinkProbeSettings(Settings):
    """Periods in milliseconds, sizes in bytes."""

    session_timeout_ms: int = Field(default=10_000, ge=1, le=86_400_000)
    declare_period_ms: int = Field(default=1_000, ge=50, le=3_600_000, description="documents looked at")
    probe_period_ms: int = Field(default=60_000, ge=500, le=86_400_000)
    probe_size_bytes: int = Field(default=16_000_000, ge=0, le=10_000_000_000)
    confidence_half_life_ms: int = Field(default=600_000, ge=1_000, le=604_800_000)
    link_count_max: int = Field(default=100_000, ge=1, le=1_000_000)
