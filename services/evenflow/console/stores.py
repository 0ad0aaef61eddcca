"""What the console keeps and reads outside the log: ended tasks as documents, the chunks of tasks' output."""

from __future__ import annotations

from typing import Any, Final

from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.ports import Absent

ENDED: Final = "ended_tasks"


class EndedTasks:
    """Tasks that ended long ago. Losing them costs their status pages only; the ledger is elsewhere."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def keep(self, rows: dict[str, dict[str, Any]]) -> None:
        """Write tasks by key."""
        await self._runtime.point("console.before-keep")
        await self._runtime.documents.put_many(ENDED, rows)
        await self._runtime.point("console.after-keep")

    async def find(self, key: str) -> dict[str, Any] | None:
        """A task's last status and course."""
        stored = await self._runtime.documents.get(ENDED, key)
        return stored.body if stored is not None else None


class Output:
    """What a member printed: chunks in order of their names."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def chunks(self, tenant: str, task: str, attempt: int, member: int) -> list[str]:
        """Paths of the chunks written so far."""
        return sorted(await self._runtime.objects.paths(f"logs/{tenant}/{task}/a{attempt}/m{member}/"))

    async def read(self, path: str) -> bytes:
        """One chunk; empty when it is gone."""
        try:
            return await self._runtime.objects.get(path)
        except Absent:
            return b""
