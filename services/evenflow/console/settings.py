"""The console's settings, with limits."""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, SecretStr, field_validator

from evenflow.platform.settings import Settings

_TOKEN: Final = re.compile(r"([!-~]{32,200})?")


class ConsoleSettings(Settings):
    """How much is remembered, how long readers wait, and who may call.

    `trusted_hosts` are the names under which the API may be called besides loopback; the port does not matter.
    `owner_token` is the first owner's, of 32 to 200 printable characters; with it every request needs a token, and
    beyond loopback the console doesn't start without. Wrong tokens are counted by address, refused changes in all.
    With `signing_key_file` the console signs what it asks of tasks, as `signer`, which placement must know.
    """

    ended_task_count_max: int = Field(default=5_000, ge=10, le=1_000_000)
    ledger_entry_count_max: int = Field(default=20_000, ge=100, le=5_000_000)
    event_count_max: int = Field(default=10_000, ge=100, le=1_000_000)
    course_entry_count_max: int = Field(default=400, ge=20, le=10_000)
    change_count_max: int = Field(default=5_000, ge=10, le=1_000_000)
    round_count_max: int = Field(default=1_000, ge=10, le=100_000)
    archive_period_ms: int = Field(default=1_000, ge=50, le=60_000)
    body_bytes_max: int = Field(default=1_048_576, ge=1_024, le=1_048_576)
    stream_count_max: int = Field(default=256, ge=1, le=10_000)
    trusted_hosts: tuple[str, ...] = Field(default=(), max_length=32)
    signing_key_file: str = Field(default="", max_length=4_096)
    signer: str = Field(default="console", pattern=r"^[a-z0-9][a-z0-9._-]{0,127}$")
    owner_token: SecretStr = SecretStr("")
    wrong_tokens_per_minute_max: int = Field(default=20, ge=1, le=10_000)
    refusals_recorded_per_minute_max: int = Field(default=120, ge=1, le=10_000)

    @field_validator("owner_token")
    @classmethod
    def _is_long_enough(cls, token: SecretStr) -> SecretStr:
        if _TOKEN.fullmatch(token.get_secret_value()) is None:
            raise ValueError(
                "must be 32 to 200 printable characters without spaces, or empty; make one with: openssl rand -hex 32"
            )
        return token
