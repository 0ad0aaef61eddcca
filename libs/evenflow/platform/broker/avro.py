"""Avro on the wire: a zero byte, the schema's id in four bytes, the record.

Written by the newest released form of the contract, read by the form it was written with and turned into today's:
fields unknown here are passed over, fields it lacks take their defaults.
"""

from __future__ import annotations

import functools
import io
import struct
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException
from pydantic import ValidationError

from evenflow.core.errors import FieldRefused, Refused
from evenflow.events.contract import Contract
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.envelope import AVRO_CONTENT_TYPE, JSON_CONTENT_TYPE
from evenflow.events.schema.avro_schema import avro_schema, from_avro, to_avro, wire_form
from evenflow.events.schema.released import Released, WireForm, schemas_folder
from evenflow.events.types import CONTRACTS
from evenflow.platform.broker.codec import Wire, refused

_FRAME: Final = struct.Struct(">bI")
_BROKEN: Final = (ValueError, TypeError, EOFError, IndexError, KeyError, OverflowError, struct.error)


class AvroWire(Wire):
    """Bodies as framed Avro; both ways."""

    def __init__(self, released: Released) -> None:
        self._released = released
        self._schemas: dict[int, Any] = {}
        self._mine: dict[type[Contract], tuple[int, Any]] = {}

    def write(self, body: Contract) -> tuple[bytes, str]:
        """A body as bytes, and their content type.

        A submission that is not UTF-8 stays as it is, for its door to refuse. Raises FieldRefused for a value that
        Avro can't hold, Refused when the contract changed and was not released.
        """
        if isinstance(body, TaskSubmitted) and not _is_text(body.raw):
            return body.raw, JSON_CONTENT_TYPE
        schema_id, schema = self._writing(type(body))
        out = io.BytesIO()
        out.write(_FRAME.pack(0, schema_id))
        try:
            fastavro.schemaless_writer(out, schema, to_avro(body))
        except _BROKEN as error:
            raise FieldRefused("value", f"can't be written as Avro: {error}") from None
        return out.getvalue(), AVRO_CONTENT_TYPE

    def read(self, event_type: str, value: bytes) -> Contract:
        """The body of a known type. Raises FieldRefused for what is no such record."""
        if len(value) < _FRAME.size or value[0]:
            raise FieldRefused("value", "is not framed as Avro: a zero byte and four bytes of schema id come first")
        form = self._released.by_id(_FRAME.unpack_from(value)[1])
        if form.event_type != event_type:
            raise FieldRefused("value", f"was written as {form.event_type}, not as {event_type}")
        contract = CONTRACTS[event_type]
        if form.major != contract.MAJOR:
            raise FieldRefused("value", f"has the major version {form.major}; this reader knows {contract.MAJOR}")
        source = io.BytesIO(value)
        source.seek(_FRAME.size)
        try:
            values: Any = fastavro.schemaless_reader(source, self._parsed(form), _own_schema(contract))
        except (*_BROKEN, SchemaParseException, fastavro.read.SchemaResolutionError) as error:
            raise FieldRefused("value", f"is no Avro record of {event_type}: {error}") from None
        if source.tell() != len(value):
            raise FieldRefused("value", f"goes on behind its Avro record of {event_type}")
        try:
            return from_avro(contract, values)
        except ValidationError as error:
            raise refused(error) from None

    def _parsed(self, form: WireForm) -> Any:
        if form.id not in self._schemas:
            self._schemas[form.id] = fastavro.parse_schema(form.schema)
        return self._schemas[form.id]

    def _writing(self, contract: type[Contract]) -> tuple[int, Any]:
        found = self._mine.get(contract)
        if found is None:
            form = next(iter(self._released.revisions(str(contract.TYPE), contract.MAJOR)), None)
            if form is None or wire_form(form.schema) != wire_form(avro_schema(contract)):
                raise Refused(f"{contract.TYPE} was changed and not released: run make schemas")
            found = self._mine[contract] = form.id, self._parsed(form)
        return found


@functools.cache
def _own_schema(contract: type[Contract]) -> Any:
    return fastavro.parse_schema(avro_schema(contract))


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


@functools.cache
def avro_wire() -> AvroWire:
    """The wire over the schemas this installation was shipped with. Raises Refused when they are not in order."""
    return AvroWire(Released(schemas_folder()))
