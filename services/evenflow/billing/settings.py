"""Billing's settings, with limits."""

from __future__ import annotations

from pydantic import Field

from evenflow.events.streams import DAY_MS
from evenflow.platform.settings import Settings


class BillingSettings(Settings):
    """Sizes and bounds.

    `entry_retention_ms`: how long an entry's id is remembered, so that the same use is not charged again. It is beyond
    all that can bring a use again: thirty days of decisions on the log, and thirty days of their dead letters.
    """

    batch_max: int = Field(default=500, ge=1, le=10_000)
    transaction_limit_s: float = Field(default=10.0, gt=0, le=600)
    session_timeout_ms: int = Field(default=10_000, ge=1_000, le=600_000)
    entry_retention_ms: int = Field(default=62 * DAY_MS, ge=1_000, le=3_660 * DAY_MS)
    flush_period_ms: int = Field(default=1_000, ge=50, le=60_000)
