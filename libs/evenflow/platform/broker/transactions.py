"""The writer of whoever decides alone: one transaction a round, fenced by two transactional ids.

Round r uses id r mod 2, so two leaders contend for one id in every round and can never both commit it. All ids are
initialised before anything is read: that ends open transactions of an earlier leader, and from then on no other can
commit. Any failure of a round ends the process: a fenced producer can't be mended, and after a time-out nobody knows
whether the round is there; the next leader finds out by initialising.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from evenflow.core.errors import Ended
from evenflow.platform.broker.codec import Encoded
from evenflow.platform.broker.ports import Producer
from evenflow.platform.broker.sending import send_all
from evenflow.platform.cancelling import CANCELLED, asked_for
from evenflow.platform.runtime import Runtime

#: How a leader's process ends. A supervisor starts it again after every code but the first.
STOPPED: Final = 0
FENCED: Final = 3
LOST: Final = 4
UNKNOWN: Final = CANCELLED
STUCK: Final = 6

#: Transactional ids of one leader; more gain nothing.
ID_COUNT: Final = 2
CLOSE_LIMIT_S: Final = 3.0
_FENCES: Final = (ProducerFenced, InvalidProducerEpoch)


class Transactions:
    """The two producers of a leader. `name` is the stem of their ids, as `evenflow.placement.<pool>`."""

    def __init__(self, runtime: Runtime, name: str, *, round_limit_s: float, fence_limit_s: float) -> None:
        self._runtime = runtime
        self._name = name
        self._round_limit_s = round_limit_s
        self._fence_limit_s = fence_limit_s
        self._producers: list[Producer] = []

    async def fence(self, still_ours: Callable[[], bool]) -> None:
        """Take both ids, which shuts out every earlier owner. Raises Ended LOST when the seat is gone meanwhile."""
        runtime = self._runtime
        for index in range(ID_COUNT):
            if not still_ours():
                raise Ended("the seat was lost before the ids were taken", exit_code=LOST)
            producer = runtime.transport.producer(
                client_id=f"{runtime.name}-{runtime.instance}-{index}", transactional_id=f"{self._name}-{index}"
            )
            self._producers.append(producer)
            try:
                async with asyncio.timeout(self._fence_limit_s):
                    await producer.start()
            except TimeoutError:
                raise Ended(f"{self._name}-{index} could not be taken in time", exit_code=STUCK) from None
            await runtime.point(f"{runtime.name}.after-fence-{index}")

    async def write(self, number: int, records: Sequence[Encoded], partitions: Sequence[int | None]) -> list[int]:
        """Write round `number` whole or not at all, and return the records' offsets.

        `partitions` names a record's partition, None = by its key. Raises Ended: FENCED when another leads, UNKNOWN
        when the round's fate is not known.
        """
        producer = self._producers[number % ID_COUNT]
        try:
            async with asyncio.timeout(self._round_limit_s):
                return await self._write(producer, records, partitions)
        except TimeoutError:
            await self._tell_whether_fenced(producer, number)
            raise Ended(f"round {number} timed out: it may be committed", exit_code=UNKNOWN) from None
        except _FENCES as error:
            raise _fenced(number, error) from error
        except Ended:
            raise
        except asyncio.CancelledError as error:
            if asked_for():
                raise
            raise Ended(f"round {number}: the client cancelled itself", exit_code=UNKNOWN) from error
        except Exception as error:  # whatever it was, nobody knows now whether the round is there
            raise Ended(f"round {number}: {type(error).__name__}: {error}", exit_code=UNKNOWN) from error

    async def _write(
        self, producer: Producer, records: Sequence[Encoded], partitions: Sequence[int | None]
    ) -> list[int]:
        point, name = self._runtime.point, self._runtime.name
        await producer.begin_transaction()
        offsets = await send_all(producer, records, partitions)
        await point(f"{name}.before-round-commit")
        await producer.commit_transaction()
        await point(f"{name}.after-round-commit")
        return offsets

    async def _tell_whether_fenced(self, producer: Producer, number: int) -> None:
        """After a pause of the whole process the limit shows before the log's refusal: ask for it.

        Raises Ended FENCED if another leads; returns when the log does not say so.
        """
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await producer.stop()
        except _FENCES as error:
            raise _fenced(number, error) from error
        except (TimeoutError, KafkaError, OSError, AssertionError) as error:
            self._runtime.log.warning("producer not closed", problem=f"{type(error).__name__}: {error}")

    async def close(self) -> None:
        """Disconnect, within a bound; an open transaction is left to whoever takes its id."""
        for producer in self._producers:
            try:
                async with asyncio.timeout(CLOSE_LIMIT_S):
                    await producer.stop()
            except (TimeoutError, KafkaError, OSError, AssertionError) as error:
                self._runtime.log.warning("producer not closed", problem=f"{type(error).__name__}: {error}")
        self._producers = []


def _fenced(number: int, error: BaseException) -> Ended:
    return Ended(f"round {number}: another leads ({type(error).__name__}: {error})", exit_code=FENCED)
