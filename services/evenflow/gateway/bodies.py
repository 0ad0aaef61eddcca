"""HTTP bodies as agents send them: strict, every wrong field is named."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenflow.events.contract import Count
from evenflow.platform.broker.codec import refused

B = TypeVar("B", bound=BaseModel)


class Body(BaseModel):
    """Unknown fields are refused."""

    # As in events.contract: values of requests are mostly ids that never come again.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, cache_strings="keys")


class SessionBody(Body):
    """POST /v1/sessions. The request is signed with the node's own key, in x-evenflow-signature."""

    node: str = Field(min_length=1, max_length=256)
    token: str = Field(default="", max_length=256)
    document: dict[str, Any]
    agent_version: str = Field(max_length=64)
    public_key: str = Field(max_length=128)
    booted_ms: Count = 0


class RecordBody(Body):
    """One record: `value` is the exact text that was signed (or its base64)."""

    stream: Literal["runs", "telemetry", "probes", "transfers"]
    type: str = Field(max_length=128)
    id: str = Field(min_length=1, max_length=256)
    key: str = Field(min_length=1, max_length=1024)
    time_ms: Count
    value: str
    encoding: Literal["text", "base64"] = "text"
    session: str = Field(max_length=256)
    sequence: Count
    attempt: Count = 0
    member: Count = 0
    epoch: Count = 0
    signature: str = Field(default="", max_length=256)
    correlation_id: str = Field(default="", max_length=256)
    causation_id: str = Field(default="", max_length=256)


class RecordsBody(Body):
    """POST /v1/nodes/{node}/records."""

    records: list[RecordBody]


def read_json(kind: type[B], data: bytes) -> B:
    """A body from JSON; FieldRefused names the first wrong field. Depth, NaN and huge numbers are refused."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        wrong = refused(error, "body")
    raise wrong  # out here, without pydantic's error and the frames that it holds
