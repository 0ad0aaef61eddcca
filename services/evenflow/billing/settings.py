"""Billing's settings, with limits."""

from __future__ import annotations

from pydantic import Field

from evenflow.platform.settings import Settings


class BillingSettings(Settings):
    """Sizes and bounds."""

    batch_max: int = Field(default=500, ge=1, le=10_000)
    transaction_limit_s: float = Field(default=10.0, gt=0, le=600)
    session_timeout_ms: int = Field(default=10_000, ge=1_000, le=600_000)
    flush_period_ms: int = Field(default=1_000, ge=50, le=60_000)
