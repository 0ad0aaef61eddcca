"""What the console keeps and reads outside the log: ended tasks, join tokens, the chunks of tasks' output."""

from __future__ import annotations

from typing import Any, Final

from evenflow.platform.runtime import Runtime
from evenflow.platform.security.join_tokens import issue_token, revoke_token, system_bytes
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


class Invitations:
    """One-time join tokens: made here, used up by whichever gateway is shown one."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def issue(self, *, lifetime_ms: int, by: str) -> str:
        """A new token's text. Raises FieldRefused for a wrong lifetime, Unavailable when it can't be kept."""
        now_ms = self._runtime.clock.now_ms()
        documents = self._runtime.documents
        grants = {"invited_by": by}
        return await issue_token(documents, system_bytes, now_ms=now_ms, lifetime_ms=lifetime_ms, grants=grants)

    async def revoke(self, token_id: str) -> bool:
        """Remove an unused token; True when there was one. Raises TokenUsed: `nodes revoke` takes that node out."""
        return await revoke_token(self._runtime.documents, token_id)


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
