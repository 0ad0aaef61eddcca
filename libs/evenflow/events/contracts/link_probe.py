"""What link-probe states: the estimate of every directed link, with its age, confidence and verdict."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Id


class LinkEstimate(Contract):
    """The whole current state of a link: compacted, keyed `from/to`.

    `confidence_ppm` falls with age and scatter. `declared_bandwidth_bits` is what the link's document says.
    """

    from_site: Id
    to_site: Id
    revision: Count
    round_trip_us: Count
    jitter_us: Count = 0
    loss_ppm: Count = 0
    bandwidth_bits: Count
    declared_bandwidth_bits: Count = 0
    price_per_gb_micro: Count = 0
    confidence_ppm: Count = 1_000_000
    sample_count: Count = 0
    sampled_ms: Count = 0
    degraded: bool = False
    reachable: bool = True


class LinkEstimated(LinkEstimate):
    """A new estimate."""

    TYPE: ClassVar = EventType.LINK_ESTIMATED


class LinkDegraded(LinkEstimate):
    """The link fell below its baseline, with hysteresis."""

    TYPE: ClassVar = EventType.LINK_DEGRADED


class LinkRecovered(LinkEstimate):
    """The link is back."""

    TYPE: ClassVar = EventType.LINK_RECOVERED
