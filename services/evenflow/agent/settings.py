"""The node agent's settings, with limits."""

from __future__ import annotations

from pydantic import Field

from evenflow.platform.settings import Settings


class AgentSettings(Settings):
    """Periods and time-outs in milliseconds, sizes in bytes. `progress_period_ms` 0 = only when the task asks."""

    heartbeat_ms: int = Field(default=0, ge=0, le=3_600_000, description="0 = what the gateway says")
    poll_wait_ms: int = Field(default=25_000, ge=0, le=600_000)
    request_timeout_ms: int = Field(default=10_000, ge=100, le=120_000)
    backoff_ms: int = Field(default=500, ge=10, le=60_000)
    backoff_ms_max: int = Field(default=5_000, ge=10, le=600_000)
    start_timeout_ms: int = Field(default=300_000, ge=100, le=86_400_000)
    stop_grace_ms: int = Field(default=10_000, ge=0, le=86_400_000, description="for what runs and is not desired")
    progress_period_ms: int = Field(default=0, ge=0, le=86_400_000)
    reclaim_recheck_ms: int = Field(default=5_000, ge=100, le=3_600_000)
    transfer_attempts_max: int = Field(default=3, ge=1, le=20)
    store_attempts_max: int = Field(default=5, ge=1, le=20)
    receipt_gather_ms: int = Field(default=0, ge=0, le=10_000, description="wait for more receipts before sending")
    unheard_after_ms: int = Field(default=60_000, ge=100, le=3_600_000, description="repeat a last receipt after this")
    whole_set_after_ms: int = Field(default=300_000, ge=1_000, le=86_400_000, description="ask for all that is desired")
    records_per_batch_max: int = Field(default=500, ge=1, le=1_000)
    batch_bytes_max: int = Field(default=400_000, ge=10_000, le=1_000_000)
    outbox_count_max: int = Field(default=100_000, ge=100, le=10_000_000)
    flush_timeout_ms: int = Field(default=2_000, ge=0, le=60_000)
