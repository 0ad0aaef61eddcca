"""The gateway's settings, with limits."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, SecretStr, field_validator

from evenflow.platform.settings import Settings

_SECRET: Final = re.compile(r"([0-9a-f]{64,128})?")


class GatewaySettings(Settings):
    """Periods in milliseconds, sizes in bytes.

    `token` is one that any new node may show (embedded profile; empty = join tokens only). `secret` is what session
    keys are derived from, hexadecimal, the same in every gateway of a pool; empty = made once and kept among the
    documents. What may be written to the log for callers who have proved nothing is bounded by the minute.
    """

    token: SecretStr = Field(default=SecretStr(""), max_length=256)
    secret: SecretStr = SecretStr("")
    heartbeat_ms: int = Field(default=10_000, ge=100, le=3_600_000)
    poll_wait_ms_max: int = Field(default=25_000, ge=0, le=600_000)
    body_bytes_max: int = Field(default=1_048_576, ge=1_024, le=16_777_216)
    object_bytes_max: int = Field(default=16_777_216, ge=1_024, le=268_435_456)
    header_bytes_max: int = Field(default=16_384, ge=1_024, le=1_048_576)
    records_per_batch_max: int = Field(default=1_000, ge=1, le=10_000)
    request_age_ms_max: int = Field(default=60_000, ge=1_000, le=86_400_000)
    requests_per_node_max: int = Field(default=200, ge=1, le=10_000)
    tombstones_per_node_max: int = Field(default=1_000, ge=1, le=100_000)
    strangers_recorded_per_minute_max: int = Field(default=60, ge=1, le=10_000)
    sessions_remembered_max: int = Field(default=100_000, ge=1, le=10_000_000)

    @field_validator("secret")
    @classmethod
    def _is_hexadecimal(cls, secret: SecretStr) -> SecretStr:
        if _SECRET.fullmatch(secret.get_secret_value()) is None:
            raise ValueError("must be 64 to 128 lower-case hexadecimal digits, or empty")
        return secret
