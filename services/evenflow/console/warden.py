"""The warden: reads the streams that no other group reads, so that bad records get parked.

Followers pass over what they can't read; parking is the work of a group reader, which remembers how far it is. It looks
at every record and does nothing with the good ones, so one plain consumer serves all streams.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from aiokafka.errors import KafkaError

from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.events.streams import BY_NAME, Stream
from evenflow.platform.broker.codec import Bad, decode
from evenflow.platform.broker.dead_letters import DeadLetters
from evenflow.platform.cancelling import watched
from evenflow.platform.runtime import Runtime

#: Streams without a group reader of their own. Tasks, receipts, checkpoints, telemetry, probes, transfers, requests,
#: assignments, usage and alerts have one.
WATCHED: Final[tuple[Stream, ...]] = (
    streams.DISPATCH,
    streams.NODE_REQUESTS,
    streams.NODES,
    streams.LINKS,
    streams.DATASETS,
    streams.BILLING,
    streams.POLICIES,
    streams.ROUNDS,
    streams.AUDIT,
)
GROUP: Final = "evenflow.console.warden"
POLL_MS: Final = 1_000
RECORDS_MAX: Final = 1_000
PAUSE_S: Final = 0.5


class Warden:
    """Runs beside the console's followers. `ended` is told what it can't survive."""

    def __init__(self, runtime: Runtime, letters: DeadLetters, ended: Callable[[BaseException], None]) -> None:
        self._runtime = runtime
        self._letters = letters
        self._ended = ended
        self._consumer = runtime.transport.consumer(
            *(stream.name for stream in WATCHED), client_id=f"{runtime.name}-{runtime.instance}-warden", group_id=GROUP
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Join the group and go on in the background."""
        await self._consumer.start()
        self._task = watched(asyncio.get_running_loop().create_task(self._run(), name="the warden"), self._ended)

    async def stop(self) -> None:
        """Leave the group."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()

    async def _run(self) -> None:
        try:
            while True:
                await self._look()
        except Exception as error:
            self._ended(error)
            raise

    async def _look(self) -> None:
        """Park the bad ones of one poll, then commit; without a commit the same records come again."""
        batches = await self._consumer.getmany(timeout_ms=POLL_MS, max_records=RECORDS_MAX)
        if not batches:
            return
        try:
            for partition, records in batches.items():
                for record in records:
                    read = decode(record, BY_NAME[partition.topic])
                    if isinstance(read, Bad):
                        await self._park(read)
            await self._consumer.commit({partition: records[-1].offset + 1 for partition, records in batches.items()})
        except (KafkaError, Unavailable) as error:
            self._runtime.log.warning("the warden looks again", problem=str(error))
            for partition, records in batches.items():
                if partition in self._consumer.assignment():
                    self._consumer.seek(partition, records[0].offset)
            await self._runtime.clock.sleep(PAUSE_S)

    async def _park(self, bad: Bad) -> None:
        await self._letters.patiently(lambda: self._letters.park(bad))
