"""The same where services write Avro, with fastavro and schemas/: python avro_with_fastavro.py HOST:PORT DIR."""

import asyncio
import io
import json
import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
from aiokafka import AIOKafkaConsumer

SCHEMAS = Path(sys.argv[2])
FILES = {number: file for file, number in json.loads((SCHEMAS / "ids.json").read_text()).items()}


@cache
def schema(number: int) -> object:
    """The form that a record was written in."""
    return fastavro.parse_schema(json.loads((SCHEMAS / FILES[number]).read_text()))


def body(record: Any) -> dict[str, Any]:
    """A log may hold both: the content type says which one a record is."""
    if dict(record.headers)["content-type"] == b"application/json":
        return json.loads(record.value)
    _zero, number = struct.unpack_from(">bI", record.value)
    return fastavro.schemaless_reader(io.BytesIO(record.value[5:]), schema(number), None)


async def follow(servers: str) -> None:
    """At least once, as with JSON."""
    reader = AIOKafkaConsumer(
        "evenflow.assignments.v1", "evenflow.billing.v1", bootstrap_servers=servers, group_id="books-of-fastavro",
        isolation_level="read_committed", auto_offset_reset="earliest", enable_auto_commit=False,
    )  # fmt: skip
    async with reader:
        while True:
            for records in (await reader.getmany(timeout_ms=1_000)).values():
                for record in records:
                    event = dict(record.headers)["ce_type"].decode()
                    print(event, record.key.decode(), body(record).get("queue"), flush=True)
            await reader.commit()


asyncio.run(follow(sys.argv[1]))
