"""Everything a round decides on besides queues and demands: the pool at one moment, never to change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from evenflow.core.fleet.columns import FleetView
from evenflow.core.fleet.datasets import DatasetsView
from evenflow.core.fleet.description import SiteDescription
from evenflow.core.fleet.links import LinksView
from evenflow.core.placement.plan import Place


@dataclass(frozen=True, slots=True)
class RunningView:
    """A task that holds places now. `expected_end_ms` by the decider's clock; None = nobody knows."""

    task_key: str
    places: tuple[Place, ...]
    expected_end_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pool at one moment. A site that `sites` does not describe is a region of its own."""

    fleet: FleetView
    links: LinksView = field(default_factory=LinksView)
    datasets: DatasetsView = field(default_factory=DatasetsView)
    running: Iterable[RunningView] = ()
    sites: Sequence[SiteDescription] = ()
