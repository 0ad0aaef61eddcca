"""JSON Schema (2020-12) of every event type.

They say what a reader accepts: fields with a default may be absent and unknown fields are ignored, as between services.
A submission's schema is that of the task specification, whose door is strict.
"""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from evenflow.events.contract import Contract
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import dataschema_of
from evenflow.events.schema.document_schema import DIALECT, document_schema

Schema = dict[str, Any]


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without a title on every field, which would only repeat its name."""

    schema_dialect = DIALECT

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema(contract: type[Contract]) -> Schema:
    """The schema of a contract's body; its `$id` is the dataschema attribute of the envelope."""
    identity = dataschema_of(str(contract.TYPE), contract.MAJOR)
    if contract is TaskSubmitted:
        return {**document_schema("task"), "$id": identity}
    return {"$schema": DIALECT, "$id": identity, **contract.model_json_schema(schema_generator=_Generator)}
