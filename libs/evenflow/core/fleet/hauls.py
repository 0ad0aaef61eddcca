"""What must be moved for a task to run at a site: datasets in, a checkpoint in, its output out.

Each dataset comes from the copy that is there soonest. A transfer shares every link with those already promised in the
same round, evenly, and leaves its source no faster than that site's upload. Nothing leaves its allowed regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evenflow.core.demand.task import DataRead, Output
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.links import CERTAIN_PPM, Path, transfer_ms
from evenflow.core.fleet.snapshot import Snapshot
from evenflow.core.fleet.views import DatasetView
from evenflow.core.lifecycle.reasons import Reason
from evenflow.core.placement.plan import Demand, Read

NO_LIMIT: Final = 0


@dataclass(frozen=True, slots=True)
class Haul:
    """Everything to move for one site. `obstacle` says why it can't be: residency or path.

    `read_bytes` is one read of each dataset; `in_ms` and `price_micro` cover all reads and the checkpoint.
    `bandwidth_bits` is the narrowest rate used, 0 when nothing moves. `starts_anew`: the checkpoint can't be brought
    here.
    """

    site: str
    obstacle: Reason | None = None
    reads: tuple[Read, ...] = ()
    read_bytes: int = 0
    in_ms: int = 0
    out_ms: int = 0
    price_micro: int = 0
    bandwidth_bits: int = NO_LIMIT
    confidence_ppm: int = CERTAIN_PPM
    hops: tuple[tuple[str, str], ...] = ()
    starts_anew: bool = False


@dataclass(frozen=True, slots=True)
class _Leg:
    path: Path
    bandwidth_bits: int
    time_ms: int
    price_micro: int


class Hauls:
    """Works out hauls for one round and remembers them; `promise` counts what the round has decided to move."""

    def __init__(self, snapshot: Snapshot, sites: Sequence[SiteDescription], *, keep_copy: bool) -> None:
        self._snapshot = snapshot
        self._keep_copy = keep_copy
        self._region = {site.id: site.region_id for site in sites}
        self._upload = {site.id: site.upload_bits for site in sites}
        self._promised: dict[tuple[str, str], int] = {}
        self._hauls: dict[tuple[object, ...], Haul] = {}

    def missing(self, data: Sequence[DataRead]) -> str | None:
        """A dataset that is nowhere, so that no site can run the task; None if all are somewhere."""
        for wanted in data:
            dataset = self._snapshot.datasets.get(wanted.dataset)
            if dataset is None or not dataset.sites:
                return wanted.dataset
        return None

    def at(self, demand: Demand, site: str) -> Haul:
        """What running at `site` needs moved. Ask only when no dataset is missing."""
        task = demand.task
        key = (task.data, task.output, demand.resume_site, demand.resume_bytes, site)
        haul = self._hauls.get(key)
        if haul is None:
            haul = self._hauls[key] = self._work_out(demand, site, task.output)
        return haul

    def promise(self, haul: Haul) -> None:
        """A placement was made with this haul: later ones share its links."""
        if haul.hops:
            for hop in haul.hops:
                self._promised[hop] = self._promised.get(hop, 0) + 1
            self._hauls.clear()

    def _work_out(self, demand: Demand, site: str, output: Output | None) -> Haul:
        legs: list[_Leg] = []
        reads: list[Read] = []
        read_bytes = 0
        for wanted in demand.task.data:
            dataset = self._snapshot.datasets.get(wanted.dataset)
            if dataset is None:
                return Haul(site, Reason.DATASET)
            if not self._may_lie_at(dataset, site):
                return Haul(site, Reason.RESIDENCY)
            if site in dataset.sites:
                continue
            times = 1 if self._keep_copy else wanted.reads
            leg = self._soonest(dataset, site, times)
            if leg is None:
                return Haul(site, Reason.PATH)
            legs.append(leg)
            read_bytes += dataset.size_bytes
            price = leg.path.price_micro(dataset.size_bytes)
            source = leg.path.sites[0]
            reads.append(Read(dataset.id, source, dataset.size_bytes, wanted.reads, self._keep_copy, price))
        starts_anew = False
        if demand.resume_bytes and demand.resume_site not in (None, site):
            resume = self._leg(demand.resume_site or site, site, demand.resume_bytes, 1)
            # A checkpoint out of reach is no obstacle: the work starts anew.
            starts_anew = resume is None
            if resume is not None:
                legs.append(resume)
        out = None
        if output is not None and output.site not in (None, site):
            out = self._leg(site, output.site or site, output.size_bytes, 1)
            if out is None:
                return Haul(site, Reason.PATH)
        return Haul(
            site,
            None,
            tuple(reads),
            read_bytes,
            sum(leg.time_ms for leg in legs),
            out.time_ms if out else 0,
            sum(leg.price_micro for leg in legs) + (out.price_micro if out else 0),
            min((leg.bandwidth_bits for leg in legs), default=NO_LIMIT),
            min((leg.path.confidence_ppm for leg in legs), default=CERTAIN_PPM),
            tuple(hop for leg in legs for hop in _hops(leg.path)),
            starts_anew,
        )

    def _may_lie_at(self, dataset: DatasetView, site: str) -> bool:
        region = self._region.get(site) or SiteDescription(site).region_id
        return not dataset.residency or region in dataset.residency

    def _soonest(self, dataset: DatasetView, site: str, times: int) -> _Leg | None:
        legs = [self._leg(source, site, dataset.size_bytes, times) for source in dataset.sites]
        found = [leg for leg in legs if leg is not None]
        return min(found, key=lambda leg: (leg.time_ms, leg.price_micro, leg.path.sites), default=None)

    def _leg(self, source: str, target: str, volume_bytes: int, times: int) -> _Leg | None:
        """One dataset, `times` over the best path; None = unreachable."""
        path = self._snapshot.links.path(source, target, volume_bytes)
        if path is None:
            return None
        shared = 1 + max((self._promised.get(hop, 0) for hop in _hops(path)), default=0)
        bandwidth = max(path.bandwidth_bits // shared, 1)
        upload = self._upload.get(source)
        if upload is not None:
            bandwidth = min(bandwidth, max(upload, 1))
        duration = transfer_ms(volume_bytes * times, bandwidth, path.round_trip_us)
        return _Leg(path, bandwidth, duration, path.price_micro(volume_bytes) * times)


def _hops(path: Path) -> tuple[tuple[str, str], ...]:
    return tuple(zip(path.sites, path.sites[1:], strict=False))
