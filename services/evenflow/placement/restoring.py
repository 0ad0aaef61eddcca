"""Reading the state back: newest valid image, then the tail of the topic up to the end taken after the fence."""

from __future__ import annotations

from aiokafka import TopicPartition

from evenflow.core.errors import Ended
from evenflow.events.streams import PLACEMENT_STATE
from evenflow.placement.encoding import row_of
from evenflow.placement.images import Images
from evenflow.placement.memory.model import Model
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.broker.codec import Bad, Received, decode
from evenflow.platform.broker.ports import Consumer, Record
from evenflow.platform.broker.transactions import STUCK
from evenflow.platform.runtime import Runtime

POLL_MS = 50
RECORDS_MAX = 2_000
STATE = TopicPartition(PLACEMENT_STATE.name, 0)


async def restore(runtime: Runtime, settings: PlacementSettings, model: Model, images: Images) -> int:
    """Fill an empty model. Returns the offset at which the state ends.

    Only after every transactional id is ours: until then an open transaction of an earlier leader hides committed
    rounds behind it. Raises Ended STUCK when reading does not get on, or for rows of a newer build.
    """
    client_id = f"{runtime.name}-{runtime.instance}-restore"
    consumer = runtime.transport.consumer(client_id=client_id, auto_offset_reset="none")
    await consumer.start()
    try:
        consumer.assign([STATE])
        end = (await consumer.end_offsets([STATE]))[STATE]
        begin = (await consumer.beginning_offsets([STATE]))[STATE]
        image = await images.newest(begin=begin, end=end, age_ms_max=settings.snapshot_age_max_ms)
        if image is not None:
            for key, row in image.rows:
                model.apply(key, row)
        await _read_tail(runtime, settings, model, consumer, image.offset if image is not None else begin, end)
    finally:
        await consumer.stop()
    runtime.log.info(
        "state restored", tasks=len(model.tasks), end=end, image=image.offset if image is not None else None
    )
    return end


async def _read_tail(
    runtime: Runtime, settings: PlacementSettings, model: Model, consumer: Consumer, start: int, end: int
) -> None:
    """Read from `start` until the position reaches `end`; it counts markers and aborted records, so it gets there."""
    consumer.seek(STATE, start)
    moved_ms, before = runtime.clock.monotonic_ms(), -1
    while (position := await consumer.position(STATE)) < end:
        now_ms = runtime.clock.monotonic_ms()
        if position != before:
            moved_ms, before = now_ms, position
        elif now_ms - moved_ms > settings.restore_stuck_ms:
            raise Ended(f"restore stands at {position} of {end}", exit_code=STUCK)
        batch = await consumer.getmany(STATE, timeout_ms=POLL_MS, max_records=RECORDS_MAX)
        for records in batch.values():
            for record in records:
                _take(runtime, model, record)
        await runtime.clock.sleep(0)


def _take(runtime: Runtime, model: Model, record: Record) -> None:
    """Apply one record. What is no state record at all is nothing that a placement wrote: it is passed over.

    A state record whose row can't be read, or that a newer build wrote, still ends the take-over.
    """
    try:
        key = (record.key or b"").decode()
        row = row_of(key, record.value) if record.value else None
    except (Ended, UnicodeDecodeError) as error:
        read = decode(record, PLACEMENT_STATE)
        if isinstance(read, Received) and (read.body is not None or read.tombstone):
            raise
        problem = read.problem if isinstance(read, Bad) else f"type {read.envelope.type[:100]!a} is unknown"
        runtime.log.error("record passed over in the state", offset=record.offset, problem=problem, cause=str(error))
        return
    model.apply(key, row)
