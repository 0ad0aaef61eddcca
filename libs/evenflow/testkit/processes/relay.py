"""A way between clients and a server on loopback that can be cut or slow, as a network's is.

    async with Relay(port, behind, clock) as way:
        way.cut()     # silence on open connections and new ones; nothing is refused, nothing is reset
        way.heal()    # what was under way arrives
        way.slow(50)  # each way, in milliseconds

Bytes are never lost or reordered: TCP would send them again.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Self

from evenflow.platform.clock import Clock
from evenflow.testkit.servers.process import LOOPBACK

CHUNK_BYTES: Final = 1 << 16


class Relay:
    """Listens on `port`, hands on to `behind`."""

    def __init__(self, port: int, behind: int, clock: Clock) -> None:
        self.port = port
        self._behind = behind
        self._clock = clock
        self._open = asyncio.Event()
        self._open.set()
        self._delay_ms = 0
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)

    def cut(self) -> None:
        """Hand on nothing."""
        self._open.clear()

    def heal(self) -> None:
        """Hand on everything at once."""
        self._open.set()
        self._delay_ms = 0

    def slow(self, delay_ms: int) -> None:
        """Hand on each piece so much later."""
        self._delay_ms = delay_ms

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._ways.add(me)
        try:
            await self._open.wait()
            theirs, ours = await asyncio.open_connection(LOOPBACK, self._behind)
            await asyncio.gather(self._hand_on(reader, ours), self._hand_on(theirs, writer))
        except OSError:  # the server is away, which the client should see
            writer.close()
        except asyncio.CancelledError:
            writer.close()
        finally:
            self._ways.discard(me)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(CHUNK_BYTES):
                if self._delay_ms:
                    await self._clock.sleep(self._delay_ms / 1_000)
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                writer.close()
