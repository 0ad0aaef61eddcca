"""Base of every event body.

Between services unknown fields are ignored, so a newer writer does not stop an older reader; documents from people go
through `events.documents`, which refuses them. Numbers carry their unit in the name and are integers.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.units import QUANTITY_MAX

#: The grammar of every id.
ID_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,127}$"

Id = Annotated[str, Field(pattern=ID_PATTERN)]
Count = Annotated[int, Field(ge=0, le=QUANTITY_MAX, strict=True)]
Signed = Annotated[int, Field(ge=-QUANTITY_MAX, le=QUANTITY_MAX, strict=True)]
Text = Annotated[str, Field(max_length=4096)]
Document = dict[str, Any]


class Part(BaseModel):
    """A nested value of a contract."""

    # Keys come again and again, values are mostly ids that never do: remembering those keeps megabytes for nothing.
    model_config = ConfigDict(frozen=True, extra="ignore", cache_strings="keys")


class Contract(Part):
    """The body of one event type. `TYPE` is its closed-list name, `MAJOR` the version in its dataschema."""

    TYPE: ClassVar[EventType]
    MAJOR: ClassVar[int] = 1
