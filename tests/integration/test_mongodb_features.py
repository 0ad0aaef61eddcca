"""What the document store asks of MongoDB: exactly what the documentation lists, seen in the commands it sends."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from motor.motor_asyncio import AsyncIOMotorClient
from pymongo.monitoring import CommandFailedEvent, CommandListener, CommandStartedEvent, CommandSucceededEvent

from evenflow.core.errors import Conflict
from evenflow.platform.stores.documents_mongo import MongoDocuments
from evenflow.testkit.servers.addresses import Addresses

pytestmark = pytest.mark.servers

#: What a driver sends by itself, whatever it is asked.
DRIVERS_OWN = ("hello", "ismaster", "endSessions", "ping", "saslStart", "saslContinue")
#: Fields of every command that say where and for whom, not what.
ADDRESSING = ("lsid", "$db", "$clusterTime", "$readPreference", "txnNumber")


class Asked(CommandListener):
    """Every command, option and operator that was sent."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def started(self, event: CommandStartedEvent) -> None:
        if event.command_name in DRIVERS_OWN:
            return
        self.names[event.command_name] = None
        for name, value in event.command.items():
            if name not in (*ADDRESSING, event.command_name):
                self.note(name, value)

    def succeeded(self, event: CommandSucceededEvent) -> None: ...

    def failed(self, event: CommandFailedEvent) -> None: ...

    def note(self, name: str, value: Any) -> None:
        """Options by their names, what is inside them by operators and options of one write."""
        self.names[name] = None
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                for key, inner in each.items():
                    if key.startswith("$") or key in ("upsert", "multi", "limit", "w"):
                        self.note(key, inner)
                    elif isinstance(inner, dict) and key != "body":
                        self.note_inside(inner)

    def note_inside(self, value: dict[str, Any]) -> None:
        for key, inner in value.items():
            if key.startswith("$"):
                self.note(key, inner)


def documented(root: Path) -> list[str]:
    """The names in the first column of the page's table."""
    page = (root / "docs" / "documents-on-mongodb.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


async def test_the_store_asks_only_for_what_is_listed(servers: Addresses, pytestconfig: pytest.Config) -> None:
    """Proves that the page names every command, option and operator that is sent, and none that is not."""
    asked = Asked()
    client: Any = AsyncIOMotorClient(servers.urls["documents"], event_listeners=[asked])
    store = MongoDocuments(client, "evenflow-features")
    await store.drop("tasks")
    assert await store.put("tasks", "a/1", {"n": 1}) == 1
    assert await store.put("tasks", "a/2", {"n": 1}, expect=0) == 1
    assert await store.put("tasks", "a/2", {"n": 2}, expect=1) == 2
    for stale in (0, 1):
        with pytest.raises(Conflict):
            await store.put("tasks", "a/2", {"n": 3}, expect=stale)
    await store.put_many("tasks", {"a/1": {"n": 4}, "b": {"n": 5}})
    assert [row.id async for row in store.scan("tasks", prefix="a/", after="a/1", limit=10)] == ["a/2"]
    assert (await store.get("tasks", "b")).body == {"n": 5}
    assert await store.delete("tasks", "b")
    await store.drop("tasks")
    await store.close()
    assert sorted(asked.names) == sorted(documented(pytestconfig.rootpath))
