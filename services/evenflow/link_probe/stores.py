"""Link-probe's view outside the log: one document a link. Losing it costs nothing."""

from __future__ import annotations

from typing import Final

from evenflow.link_probe.service import LinkProbe
from evenflow.platform.runtime import Runtime

LINKS: Final = "links"


class LinkViews:
    """Writes what changed since the last flush."""

    def __init__(self, runtime: Runtime, probe: LinkProbe) -> None:
        self._runtime = runtime
        self._probe = probe
        self._written: dict[str, int] = {}

    async def flush(self) -> None:
        """Write links with a newer revision than last written."""
        rows = {
            f"{source}..{target}": link.published
            for (source, target), link in self._probe.links.items()
            if link.published is not None
        }
        changed = {name: body for name, body in rows.items() if self._written.get(name) != body.revision}
        if changed:
            await self._runtime.documents.put_many(
                LINKS, {name: body.model_dump(mode="json") for name, body in changed.items()}
            )
            self._written |= {name: body.revision for name, body in changed.items()}
