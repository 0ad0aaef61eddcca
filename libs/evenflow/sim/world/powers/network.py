"""Power over who reaches whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenflow.sim.stage import Party
from evenflow.sim.world.paths.links import Links


class NetworkPowers:
    """Cuts of nodes, sites and links; `site_of` knows where a node stands."""

    def __init__(self, links: Links, site_of: Callable[[str], str | None]) -> None:
        self._links = links
        self._site_of = site_of
        self._cut_nodes: dict[str, None] = {}

    def reaches(self, node: str) -> bool:
        """Whether a node's control messages pass."""
        return node not in self._cut_nodes and (self._site_of(node) or "") not in self._links.cut_sites

    def store_reached(self, node: str) -> bool:
        """Whether a node reaches the object store: a cut node does, one at a cut site does not."""
        return (self._site_of(node) or "") not in self._links.cut_sites

    async def cut(self, party: Party) -> None:
        """Messages of the party stop."""
        self._set(party, cut=True)

    async def join(self, party: Party) -> None:
        """They flow again."""
        self._set(party, cut=False)

    def _set(self, party: Party, *, cut: bool) -> None:
        kind, first, second = party
        if kind == "link":
            self._links.cut(first, second, cut=cut)
        elif kind == "site":
            self._links.cut_site(first, cut=cut)
        elif cut:
            self._cut_nodes[first] = None
        else:
            self._cut_nodes.pop(first, None)

    async def change_link(self, source: str, target: str, changes: Mapping[str, Any]) -> None:
        """The real link changes."""
        self._links.change(source, target, changes)

    def end_all(self) -> None:
        """Everybody reaches everybody again."""
        self._cut_nodes.clear()
        self._links.join_all()
