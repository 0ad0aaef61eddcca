"""Link-probe's use-cases: take a link's document, ask for probes, take samples, age what is not measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import LinkDescription
from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.node import Reach
from evenflow.core.probing.estimate import SAMPLES_KEPT, Sample, aged_confidence, estimate, is_degraded
from evenflow.core.units import MICRO
from evenflow.events import streams
from evenflow.events.contracts.agent import LinkSampled
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.inventory import NodeProbeRequested, NodeStatus
from evenflow.events.contracts.link_probe import LinkDegraded, LinkEstimate, LinkEstimated, LinkRecovered
from evenflow.events.contracts.platform import AlertCleared, AlertRaised
from evenflow.events.documents.network import parse_link
from evenflow.link_probe.settings import LinkProbeSettings
from evenflow.platform.broker.codec import Fact, Received
from evenflow.platform.runtime import Runtime

#: A new estimate is published when confidence moved by at least this much by age alone.
CONFIDENCE_STEP_PPM = 100_000

Pair = tuple[str, str]


class LinkState(StrEnum):
    """How a link does, in one word."""

    OK = "ok"
    DEGRADED = "degraded"
    UNREACHABLE = "unreachable"


@dataclass(slots=True)
class Link:
    """One directed link: its document, its newest samples, what was last published."""

    document: LinkDescription
    samples: list[Sample]
    published: LinkEstimate | None = None
    sampled_ms: int = 0
    sample_count: int = 0
    measured_confidence_ppm: int = field(default=MICRO)

    @property
    def state(self) -> LinkState:
        """By what was last published."""
        if self.published is None or (self.published.reachable and not self.published.degraded):
            return LinkState.OK
        return LinkState.DEGRADED if self.published.reachable else LinkState.UNREACHABLE


class LinkProbe:
    """State and rules of one link-probe process."""

    def __init__(self, runtime: Runtime, settings: LinkProbeSettings) -> None:
        self.runtime = runtime
        self.settings = settings
        self.links: dict[Pair, Link] = {}
        self.nodes: dict[str, NodeStatus] = {}
        self.known: dict[Pair, LinkEstimate] = {}
        self.documents: dict[Pair, LinkDescription] = {}
        self._undeclared: dict[Pair, None] = {}
        self._asked = 0

    # tables -----------------------------------------------------------------------------------------------------------

    def follow(self, received: Received) -> None:
        """Fold nodes, link documents and the own estimates. Raises FieldRefused for a document that is none."""
        body = received.body
        if isinstance(body, NodeStatus):
            self.nodes[body.node] = body
        elif isinstance(body, LinkEstimate):
            self.known[body.from_site, body.to_site] = body
        elif isinstance(body, DocumentPublished) and body.kind == "link":
            link = parse_link(body.document)
            self.documents[link.source, link.target] = link
            self._undeclared[link.source, link.target] = None
            if link.both_ways:
                self._undeclared[link.target, link.source] = None
                self.documents[link.target, link.source] = LinkDescription(
                    source=link.target,
                    target=link.source,
                    bandwidth_bits=link.bandwidth_bits,
                    round_trip_us=link.round_trip_us,
                    loss_ppm=link.loss_ppm,
                    price_per_gb_micro=link.price_per_gb_micro,
                )

    def declare(self) -> list[Fact]:
        """Periodic: a link whose document is new or changed is published with the declared values as measured."""
        facts: list[Fact] = []
        now_ms = self.runtime.clock.now_ms()
        pairs, self._undeclared = sorted(self._undeclared), {}
        for pair in pairs:
            if pair not in self.links and len(self.links) >= self.settings.link_count_max:
                self.runtime.log.warning("link not taken: too many", link=f"{pair[0]}/{pair[1]}")
                continue
            document = self.documents[pair]
            link = self.links.get(pair)
            if link is not None and link.document == document:
                continue
            known = self.known.get(pair)
            declared = _declared(document, now_ms)
            resumed = link is None and known is not None and known.declared_bandwidth_bits == document.bandwidth_bits
            first = _as_sample(known) if resumed and known is not None else declared
            link = self.links[pair] = Link(document, [first] * SAMPLES_KEPT, published=known, sampled_ms=first.at_ms)
            if resumed and known is not None:
                link.sample_count = known.sample_count
            if not resumed or known is None or known.price_per_gb_micro != document.price_per_gb_micro:
                facts += self._publish(pair, link, None)
        return facts

    # probing ----------------------------------------------------------------------------------------------------------

    def ask(self) -> list[Fact]:
        """Periodic: one probe request a link, to a live node of its sending site, the nodes taking turns."""
        self._asked += 1
        by_site: dict[str, list[str]] = {}
        for name in sorted(self.nodes):
            status = self.nodes[name]
            if status.reach is Reach.OK and not status.revoked:
                by_site.setdefault(str(status.document.get("site", "")), []).append(name)
        facts: list[Fact] = []
        for source, target in sorted(self.links):
            askable = by_site.get(source)
            if askable:
                node = askable[self._asked % len(askable)]
                request = NodeProbeRequested(
                    node=node,
                    request=f"probe-{source}-{target}-{self.runtime.instance}-{self._asked}",
                    to_site=target,
                    bytes=self.settings.probe_size_bytes,
                )
                facts.append(Fact(streams.NODE_REQUESTS, request, id=request.request))
        return facts

    def take(self, body: LinkSampled, cause: Received) -> list[Fact]:
        """One sample. A sample of a link without a document is refused: it has no price and no baseline."""
        pair = (body.from_site, body.to_site)
        link = self.links.get(pair)
        if link is None:
            raise FieldRefused("to_site", f"there is no link {pair[0]} → {pair[1]}; publish its document first")
        if not body.reachable and body.bandwidth_bits:
            raise FieldRefused("bandwidth_bits", "an unreachable link has none")
        link.samples = [
            *link.samples[-(SAMPLES_KEPT - 1) :],
            Sample(
                self.runtime.clock.now_ms(),
                body.reachable,
                body.round_trip_us,
                body.jitter_us,
                body.loss_ppm,
                body.bandwidth_bits or (link.samples[-1].bandwidth_bits if body.reachable else 0),
            ),
        ]
        link.sampled_ms = self.runtime.clock.now_ms()
        link.sample_count += 1
        return self._publish(pair, link, cause)

    def age(self) -> list[Fact]:
        """Periodic: confidence of links that were not measured lately falls."""
        facts: list[Fact] = []
        now_ms = self.runtime.clock.now_ms()
        for pair in sorted(self.links):
            link = self.links[pair]
            if link.published is None:
                continue
            aged = aged_confidence(
                link.measured_confidence_ppm,
                age_ms=now_ms - link.sampled_ms,
                half_life_ms=self.settings.confidence_half_life_ms,
            )
            if link.published.confidence_ppm - aged >= CONFIDENCE_STEP_PPM:
                facts += self._publish(pair, link, None, confidence_ppm=aged)
        return facts

    def _publish(self, pair: Pair, link: Link, cause: Received | None, confidence_ppm: int | None = None) -> list[Fact]:
        found = estimate(link.samples)
        before = link.published
        was = before.degraded if before is not None else False
        degraded = is_degraded(
            found, baseline_bits=link.document.bandwidth_bits, baseline_us=link.document.round_trip_us, was=was
        )
        link.measured_confidence_ppm = found.confidence_ppm
        kind = LinkEstimated if degraded == was else LinkDegraded if degraded else LinkRecovered
        body = kind(
            from_site=pair[0],
            to_site=pair[1],
            revision=before.revision + 1 if before is not None else 1,
            round_trip_us=found.round_trip_us,
            jitter_us=found.jitter_us,
            loss_ppm=found.loss_ppm,
            bandwidth_bits=found.bandwidth_bits,
            declared_bandwidth_bits=link.document.bandwidth_bits,
            price_per_gb_micro=link.document.price_per_gb_micro,
            confidence_ppm=found.confidence_ppm if confidence_ppm is None else confidence_ppm,
            sample_count=link.sample_count,
            sampled_ms=link.sampled_ms,
            degraded=degraded,
            reachable=found.reachable,
        )
        link.published = body
        identity = f"link-{pair[0]}-{pair[1]}-{body.revision}" if cause is None else ""
        return [Fact(streams.LINKS, body, cause=cause, id=identity), *self._alert(pair, body, cause, was=was)]

    def _alert(self, pair: Pair, body: LinkEstimate, cause: Received | None, *, was: bool) -> list[Fact]:
        if body.degraded == was:
            return []
        kind = AlertRaised if body.degraded else AlertCleared
        subject = f"{pair[0]}/{pair[1]}"
        message = f"{body.bandwidth_bits} of {body.declared_bandwidth_bits} bit/s, round trip {body.round_trip_us} us"
        alert = kind(name=Alert.LINK_DEGRADED, subject=subject, message=message, at_ms=self.runtime.clock.now_ms())
        return [Fact(streams.ALERTS, alert, cause=cause, id=f"link-alert-{subject}-{body.revision}")]


def _declared(document: LinkDescription, now_ms: int) -> Sample:
    return Sample(
        at_ms=now_ms,
        reachable=True,
        round_trip_us=document.round_trip_us,
        jitter_us=0,
        loss_ppm=document.loss_ppm,
        bandwidth_bits=document.bandwidth_bits,
    )


def _as_sample(known: LinkEstimate) -> Sample:
    return Sample(
        known.sampled_ms,
        known.reachable,
        known.round_trip_us,
        known.jitter_us,
        known.loss_ppm,
        known.bandwidth_bits,
    )
