"""The policy: every number that placement, retry and billing may be told, with the defaults of the product.

A policy is a document with versions; docs/policy.md explains each key. Ratios and weights are kept in parts per
million, durations in milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

#: Scores a policy may weigh, and the weight each has by default, in parts per million.
SCORE_WEIGHTS_PPM: Final[tuple[tuple[str, int], ...]] = (
    ("best_fit", 1_000_000),
    ("complement", 0),
    ("core", 1_000_000),
    ("fragmentation", 1_000_000),
    ("latency", 1_000_000),
    ("locality", 1_000_000),
    ("price", 0),
    ("reliability", 0),
    ("speed", 1_000_000),
    ("spread", 0),
)


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """Which placement policy decides, and how it weighs its scores (sorted by name)."""

    use: str = "default"
    weights_ppm: tuple[tuple[str, int], ...] = SCORE_WEIGHTS_PPM


@dataclass(frozen=True, slots=True)
class OrderRule:
    """Who comes first: waiting raises a task, a blocked head keeps a reservation, others fill in behind it."""

    ageing_ms: int = 60_000
    backfill: Literal["easy", "conservative", "off"] = "easy"
    starvation_ms: int = 60_000


@dataclass(frozen=True, slots=True)
class FairnessRule:
    """How long past use counts against a queue."""

    half_life_ms: int = 604_800_000
    entry_penalty: bool = True


@dataclass(frozen=True, slots=True)
class PreemptionRule:
    """What may be taken back from whom, and how fast."""

    by_priority: bool = False
    reclaim: bool = True
    minimum_run_ms: int = 0
    per_minute_max: int = 60
    on_shrink: bool = False


@dataclass(frozen=True, slots=True)
class CrossingRule:
    """A task leaves its data's site when the gain exceeds margin × the value of staying."""

    margin_ppm: int = 100_000
    keep_copy: bool = True


@dataclass(frozen=True, slots=True)
class Room:
    """Room kept free: an amount in milli-units, or a share of what is there in parts per million; one of them is 0."""

    amount_milli: int = 0
    share_ppm: int = 0


@dataclass(frozen=True, slots=True)
class HeadroomRule:
    """Room kept free for peaks and failures: cores and devices of a node, devices of a site."""

    node_cpu: Room = Room()
    node_devices: Room = Room()
    site_devices: Room = Room()


@dataclass(frozen=True, slots=True)
class SilenceRule:
    """When a silent node is lost, and what becomes of its work when it comes back."""

    tolerance_ms: int = 30_000
    hold_off_ms: int = 60_000
    reconnect: Literal["adopt", "stop"] = "adopt"
    blind_max_ms: int = 900_000


@dataclass(frozen=True, slots=True)
class RetryRule:
    """How failed work is tried again."""

    backoff_first_ms: int = 5_000
    backoff_max_ms: int = 300_000
    start_failures_quarantine: int = 3
    avoid_failed_node: bool = True
    memory_growth_ppm: int = 2_000_000


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    """How many sites hold a checkpoint, and how late is too late."""

    copies: int = 1
    alert_after_ms: int = 600_000


@dataclass(frozen=True, slots=True)
class MovesRule:
    """Whether running work may be moved to a better place."""

    on: bool = False
    cost_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Charges:
    """Which share of its price each kind of ledger entry costs, in parts per million."""

    work: int = 1_000_000
    transfer: int = 1_000_000
    wait: int = 0
    start: int = 0
    stop: int = 0
    failed_start: int = 0
    lost: int = 0
    correction: int = 0


@dataclass(frozen=True, slots=True)
class BillingRule:
    """In what money, and for what."""

    currency: str = "CNY"
    charge_ppm: Charges = Charges()


@dataclass(frozen=True, slots=True)
class Policy:
    """One version of the policy document."""

    name: str = "default"
    placement: PlacementRule = PlacementRule()
    order: OrderRule = OrderRule()
    fairness: FairnessRule = FairnessRule()
    preemption: PreemptionRule = PreemptionRule()
    crossing: CrossingRule = CrossingRule()
    headroom: HeadroomRule = HeadroomRule()
    silence: SilenceRule = SilenceRule()
    retry: RetryRule = RetryRule()
    checkpoint: CheckpointRule = CheckpointRule()
    moves: MovesRule = MovesRule()
    billing: BillingRule = BillingRule()


DEFAULT_POLICY: Final = Policy()
