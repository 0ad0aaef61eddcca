"""Inventory's settings, with limits."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from evenflow.platform.settings import Settings


class InventorySettings(Settings):
    """Periods and tolerances, in milliseconds."""

    session_timeout_ms: int = Field(default=10_000, ge=1, le=86_400_000)
    heartbeat_period_ms: int = Field(default=10_000, ge=100, le=3_600_000)
    suspect_after_ms: int = Field(default=15_000, ge=100, le=86_400_000)
    silence_tolerance_ms: int = Field(default=30_000, ge=200, le=86_400_000)
    hold_off_ms: int = Field(default=60_000, ge=0, le=86_400_000)
    blind_max_ms: int = Field(default=900_000, ge=0, le=86_400_000)
    judge_period_ms: int = Field(default=1_000, ge=50, le=60_000)
    flush_period_ms: int = Field(default=1_000, ge=50, le=60_000)
    node_count_max: int = Field(default=200_000, ge=1, le=1_000_000)

    @model_validator(mode="after")
    def _longer_than_a_period(self) -> Self:
        """Suspicion comes after half the tolerance at the latest; within one period all would be suspect.

        Raises ValueError where the three do not go together.
        """
        for name in ("suspect_after_ms", "silence_tolerance_ms"):
            least_ms = self.heartbeat_period_ms * (2 if name == "silence_tolerance_ms" else 1)
            if getattr(self, name) <= least_ms:
                raise ValueError(
                    f"{name} must be over {least_ms} while heartbeat_period_ms is {self.heartbeat_period_ms}: "
                    "a node is heard once a period"
                )
        return self
