"""The registry of streams says who reads what; here the services themselves are asked."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.events.streams import BY_NAME, STREAMS
from evenflow.hosting.registry import SERVICES
from evenflow.platform.broker.embedded.clients.consumer import EmbeddedConsumer
from evenflow.testkit.pool import Pool, run

SETTINGS = {"gateway": {"token": "t" * 43, "secret": "0a" * 32}}
WARDEN = "warden"
"""The console's parking of unreadable records reads whatever has no group of its own, and uses nothing of it."""


@pytest.mark.parametrize("name", SERVICES)
def test_the_registry_names_a_service_as_reader_of_exactly_what_it_reads(name: str, monkeypatch: Any) -> None:
    """Proves that no reader in the published description is made up, and that none is left out."""
    read: dict[str, None] = {}
    assign, subscribe = EmbeddedConsumer.assign, EmbeddedConsumer.subscribe

    def note(consumer: Any, topics: Any) -> None:
        if WARDEN not in consumer.client_id:
            read.update(dict.fromkeys(topic for topic in topics if topic in BY_NAME and not own(topic)))

    def own(topic: str) -> bool:
        """What a service writes for itself alone it reads when there is something to restore."""
        return BY_NAME[topic].writers == BY_NAME[topic].readers == (name,)

    def assigned(consumer: Any, partitions: Any) -> None:
        note(consumer, [partition.topic for partition in partitions])
        assign(consumer, partitions)

    def subscribed(consumer: Any, topics: Any = (), *rest: Any, **named: Any) -> None:
        note(consumer, topics)
        subscribe(consumer, topics, *rest, **named)

    async def story(pool: Pool) -> None:
        monkeypatch.setattr(EmbeddedConsumer, "assign", assigned)
        monkeypatch.setattr(EmbeddedConsumer, "subscribe", subscribed)
        await pool.start(name, **SETTINGS.get(name, {}))
        await pool.pass_s(15)

    run(story)
    assert sorted(read) == sorted(stream.name for stream in STREAMS if name in stream.readers and not own(stream.name))
