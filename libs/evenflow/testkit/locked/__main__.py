"""`make acl-matrix`: a locked Kafka on loopback, the list of permissions on it, and every user's tries."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from evenflow.events.streams import topics
from evenflow.platform.broker.kafka import KafkaTransport
from evenflow.platform.clock import RandomIds, SystemClock
from evenflow.platform.security.permissions import permissions
from evenflow.testkit.locked.matrix import Matrix, table
from evenflow.testkit.locked.servers import ROOT, LockedKafka
from evenflow.testkit.servers.local import LocalServers
from evenflow.testkit.servers.process import LOOPBACK


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  the command's own output


async def _run(folder: Path) -> int:
    clock = SystemClock()
    servers = LocalServers(Path.cwd(), folder, clock, _say, tied=True, made_of=(LockedKafka,))
    await servers.start([LockedKafka.kind])
    try:
        kafka = servers.servers[LockedKafka.kind]
        assert isinstance(kafka, LockedKafka)
        transport = KafkaTransport(
            f"{LOOPBACK}:{kafka.port}", clock=clock, ids=RandomIds(clock), access=kafka.access(ROOT)
        )
        await transport.provision(topics())
        applied = await transport.permit(permissions(agents_on_log=True))
        began_ms = clock.monotonic_ms()
        cells = await Matrix(kafka, agents_on_log=True).run()
    finally:
        await servers.stop()
    for line in table(cells):
        _say(line)
    wrong = sum(not cell.right for cell in cells)
    allowed = sum(cell.allowed for cell in cells)
    took_s = (clock.monotonic_ms() - began_ms) / 1000
    _say(
        f"\n{len(applied.added)} permissions; {len(cells)} tries in {took_s:.0f} s: {allowed} allowed, "
        f"{len(cells) - allowed} refused by the broker, {wrong} not as listed"
    )
    return 1 if wrong else 0


def main() -> int:
    """In a folder that is gone afterwards."""
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # it says each refusal again, and the table counts them
    with tempfile.TemporaryDirectory(prefix="evenflow-locked-") as folder:
        return asyncio.run(_run(Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
