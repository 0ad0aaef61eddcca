"""Every decision and every charge, with evenflow.client: python with_evenflow.py kafka://HOST:PORT."""

import asyncio
import sys

from evenflow.client.subscribing import Log, Subscription


async def follow(log: Log) -> None:
    """At least once: an event counts as handled when the next one is asked for. JSON and Avro alike."""
    async with Subscription(log, "assignments", "billing", group="books-of-evenflow") as events:
        async for event in events:
            print(event.envelope.type, event.key, getattr(event.body, "queue", ""), flush=True)


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1]))
