"""AsyncAPI 3.0: every stream as a channel with its key, partitions and retention, every type as a message.

Payloads refer to the JSON Schemas beside the file. What AsyncAPI has no word for stands in `x-` fields: the key's make,
the archive, dead letters.
"""

from __future__ import annotations

from typing import Any, Final

from evenflow.events.contract import Contract
from evenflow.events.envelope import AVRO_CONTENT_TYPE, JSON_CONTENT_TYPE, SPECVERSION, dataschema_of
from evenflow.events.streams import MESSAGE_BYTES_MAX, Stream, dead_letters_of, topics
from evenflow.events.types import CONTRACTS

VERSION: Final = "1.0.0"
BINDING: Final = "0.5.0"
AGENTS: Final = "agents"

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "string", "pattern": "^[0-9]{1,18}$"}

#: Header → what it holds. The first part is CloudEvents in Kafka's binary mode.
_HEADERS: Final[dict[str, Schema]] = {
    "ce_specversion": {"const": SPECVERSION},
    "ce_id": {**_TEXT, "minLength": 1, "description": "Stable: the same fact published again carries the same id."},
    "ce_source": {**_TEXT, "minLength": 1, "format": "uri-reference", "description": "The service that states it."},
    "ce_type": {**_TEXT, "minLength": 1},
    "ce_time": {**_TEXT, "format": "date-time", "description": "The writer's wall clock, for people only."},
    "ce_subject": {**_TEXT, "description": "What it is about: the record's key unless said otherwise."},
    "ce_dataschema": {**_TEXT, "format": "uri"},
    "content-type": {"enum": [JSON_CONTENT_TYPE, AVRO_CONTENT_TYPE]},
    "correlation_id": {**_TEXT, "description": "The id of the first event of the chain."},
    "causation_id": {**_TEXT, "description": "The id of the event this one follows from."},
    "tenant": _TEXT,
    "traceparent": _TEXT,
}
_REQUIRED: Final = ("ce_specversion", "ce_id", "ce_source", "ce_type", "ce_time")
_STAMP: Final[dict[str, Schema]] = {
    "node": _TEXT,
    "session": _TEXT,
    "sequence": {**_NUMBER, "description": "Grows by one with each record of the session."},
    "attempt": _NUMBER,
    "member": _NUMBER,
    "epoch": _NUMBER,
    "signature": {**_TEXT, "pattern": "^[0-9a-f]*$", "description": "Over the value's exact bytes and this stamp."},
}


def asyncapi() -> Schema:
    """The whole document, ready to be written as JSON."""
    streams = topics()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Evenflow",
            "version": VERSION,
            "description": "What travels on the log. Readers ignore fields they do not know and skip types they do not"
            " know; they park a record of an unknown major version.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": JSON_CONTENT_TYPE,
        "channels": {short_name(stream): _channel(stream) for stream in streams},
        "operations": dict(_operation(*key) for stream in streams for key in _parties(stream)),
        "components": {
            "messages": {name: _message(name, contract) for name, contract in CONTRACTS.items()},
            "schemas": {
                "envelope": _headers(_HEADERS, _REQUIRED),
                "agent-envelope": _headers(_HEADERS | _STAMP, (*_REQUIRED, "node", "session", "sequence", "signature")),
            },
        },
    }


def short_name(stream: Stream) -> str:
    """A stream's name without the product's."""
    return stream.name.removeprefix("evenflow.")


def types_of(stream: Stream) -> list[str]:
    """The types a stream carries that have a contract; the others are on the closed list and not yet in use."""
    return [name for name in stream.carries if name in CONTRACTS]


def _channel(stream: Stream) -> Schema:
    configuration: Schema = {
        "cleanup.policy": ["compact" if stream.compacted else "delete"],
        "max.message.bytes": MESSAGE_BYTES_MAX,
    }
    if not stream.compacted:
        configuration["retention.ms"] = stream.retention_ms
    channel: Schema = {
        "address": stream.name,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in types_of(stream)},
        "bindings": {
            "kafka": {
                "topic": stream.name,
                "partitions": stream.partitions,
                "topicConfiguration": configuration,
                "bindingVersion": BINDING,
            }
        },
        "x-key": stream.key,
        "x-archive": stream.archive,
    }
    if stream.dead_letters:
        channel["x-dead-letters"] = dead_letters_of(stream.name)
    return channel


def _parties(stream: Stream) -> list[tuple[Stream, str, str]]:
    return [
        *((stream, writer, "send") for writer in stream.writers),
        *((stream, reader, "receive") for reader in stream.readers),
    ]


def _operation(stream: Stream, party: str, action: str) -> tuple[str, Schema]:
    verb = "writes" if action == "send" else "reads"
    name = short_name(stream)
    return f"{party}.{verb}.{name}", {
        "action": action,
        "channel": {"$ref": f"#/channels/{name}"},
        "tags": [{"name": party}],
    }


def _message(name: str, contract: type[Contract]) -> Schema:
    stream = next((one for one in topics() if name in one.carries), None)
    is_agents = stream is not None and AGENTS in stream.writers
    return {
        "name": name,
        "title": contract.__name__,
        "summary": " ".join((contract.__doc__ or "").split("\n\n")[0].split()),
        "contentType": JSON_CONTENT_TYPE,
        "headers": {"$ref": f"#/components/schemas/{'agent-envelope' if is_agents else 'envelope'}"},
        "payload": {"$ref": f"./json/{name}.v{contract.MAJOR}.schema.json"},
        "bindings": {
            "kafka": {
                "key": {"type": "string", "description": stream.key if stream else ""},
                "bindingVersion": BINDING,
            }
        },
        "x-dataschema": dataschema_of(name, contract.MAJOR),
    }


def _headers(properties: dict[str, Schema], required: tuple[str, ...]) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}
