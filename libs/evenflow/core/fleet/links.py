"""Links between sites and the path a transfer takes over them.

A path is the chain of least time for a volume: the round trips of its links add up, the narrowest link sets the rate.
The rate is not additive, so the fastest chain is looked for once per distinct bandwidth, among links at least as wide.
No link means unreachable.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from evenflow.core.fleet.views import LinkView
from evenflow.core.units import divide_half_even

#: The volume for which a path is the fastest one, when the caller names none: 1 GB.
VOLUME_BYTES = 10**9
BYTES_PER_GB = 10**9
#: Confidence of a path that needs no link.
CERTAIN_PPM = 1_000_000


@dataclass(frozen=True, slots=True)
class Path:
    """A chain of links: its sites from first to last, and what it offers.

    `bandwidth_bits` is that of the narrowest link (0 = no link needed, no limit), `price_per_gb_micro` and
    `round_trip_us` are sums, `confidence_ppm` is the lowest.
    """

    sites: tuple[str, ...]
    round_trip_us: int
    bandwidth_bits: int
    price_per_gb_micro: int
    confidence_ppm: int

    def transfer_ms(self, volume_bytes: int) -> int:
        """Time for `volume_bytes` over the whole path, rounded up to a millisecond."""
        if len(self.sites) < 2:
            return 0
        return transfer_ms(volume_bytes, self.bandwidth_bits, self.round_trip_us)

    def price_micro(self, volume_bytes: int) -> int:
        """What one read of `volume_bytes` costs over the whole path, rounded half to even."""
        return divide_half_even(self.price_per_gb_micro * volume_bytes, BYTES_PER_GB)


def transfer_ms(volume_bytes: int, bandwidth_bits: int, round_trip_us: int) -> int:
    """Time for `volume_bytes` at a rate after one round trip, each rounded up to a millisecond; nothing takes none."""
    if volume_bytes <= 0:
        return 0
    return -(-(volume_bytes * 8_000) // bandwidth_bits) + -(-round_trip_us // 1_000)


class LinksView:
    """The links at one moment. Paths are worked out when first asked for."""

    def __init__(self, links: Iterable[LinkView] = ()) -> None:
        usable = [link for link in links if link.reachable and link.bandwidth_bits > 0]
        usable.sort(key=lambda link: (link.from_site, link.to_site))
        self._from: dict[str, list[LinkView]] = {}
        for link in usable:
            self._from.setdefault(link.from_site, []).append(link)
        self._widths = sorted({link.bandwidth_bits for link in usable}, reverse=True)
        self._paths: dict[tuple[str, str, int], Path | None] = {}

    def path(self, from_site: str, to_site: str, volume_bytes: int = VOLUME_BYTES) -> Path | None:
        """The chain of least time for `volume_bytes`; None = unreachable. Ties: cheaper, shorter, earlier names."""
        if from_site == to_site:
            return Path((from_site,), 0, 0, 0, CERTAIN_PPM)
        key = (from_site, to_site, volume_bytes)
        if key not in self._paths:
            self._paths[key] = self._fastest(from_site, to_site, volume_bytes)
        return self._paths[key]

    def _fastest(self, from_site: str, to_site: str, volume_bytes: int) -> Path | None:
        best: tuple[int, int, int, tuple[str, ...]] | None = None
        found: Path | None = None
        for width in self._widths:
            path = self._shortest(from_site, to_site, width)
            if path is None:
                continue
            rank = (path.transfer_ms(volume_bytes), path.price_per_gb_micro, len(path.sites), path.sites)
            if best is None or rank < best:
                best, found = rank, path
        return found

    def _shortest(self, from_site: str, to_site: str, width: int) -> Path | None:
        """Least round trip, then least price, fewest links, earliest names, over links of at least `width`."""
        heap: list[tuple[int, int, int, tuple[str, ...], int, int]] = [(0, 0, 1, (from_site,), 0, CERTAIN_PPM)]
        done: dict[str, None] = {}
        while heap:
            round_trip, price, length, sites, narrowest, confidence = heapq.heappop(heap)
            here = sites[-1]
            if here in done:
                continue
            done[here] = None
            if here == to_site:
                return Path(sites, round_trip, narrowest, price, confidence)
            for link in self._from.get(here, ()):
                if link.bandwidth_bits < width or link.to_site in done:
                    continue
                entry = (
                    round_trip + link.round_trip_us,
                    price + link.price_per_gb_micro,
                    length + 1,
                    (*sites, link.to_site),
                    min(narrowest, link.bandwidth_bits) if narrowest else link.bandwidth_bits,
                    min(confidence, link.confidence_ppm),
                )
                heapq.heappush(heap, entry)
        return None


class Links:
    """The estimates of all links, as they change."""

    def __init__(self) -> None:
        self._links: dict[tuple[str, str], LinkView] = {}
        self._view: LinksView | None = None

    def set(self, link: LinkView) -> None:
        """Take a link's newest estimate."""
        key = (link.from_site, link.to_site)
        if self._links.get(key) != link:
            self._links[key] = link
            self._view = None

    def remove(self, from_site: str, to_site: str) -> None:
        """Forget a link."""
        if self._links.pop((from_site, to_site), None) is not None:
            self._view = None

    def path(self, from_site: str, to_site: str, volume_bytes: int = VOLUME_BYTES) -> Path | None:
        """As LinksView.path, for this moment."""
        return self.snapshot().path(from_site, to_site, volume_bytes)

    def snapshot(self) -> LinksView:
        """The links of this moment; the same object until one changes."""
        if self._view is None:
            self._view = LinksView(self._links.values())
        return self._view
