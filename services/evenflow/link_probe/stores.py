"""Link-probe's view outside the log: one document a link. Losing it costs nothing."""

from __future__ import annotations

from evenflow.link_probe.service import LinkProbe
from evenflow.platform.runtime import Runtime
from evenflow.platform.stores.views.revisions import RevisionView


class LinkViews:
    """Writes what changed since the last flush."""

    def __init__(self, runtime: Runtime, probe: LinkProbe) -> None:
        self._probe = probe
        self._links = RevisionView(runtime.documents, runtime.clock, runtime.log, "links")

    async def flush(self) -> None:
        """Write links that changed."""
        links = self._probe.links.items()
        await self._links.flush({f"{pair[0]}..{pair[1]}": link.published for pair, link in links if link.published})
