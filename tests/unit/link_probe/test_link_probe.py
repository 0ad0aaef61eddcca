"""Link-probe as others see it: declared values first, probes asked for, slow links flagged with hysteresis."""

from __future__ import annotations

from typing import Any

import pytest

from evenflow.core.probing.estimate import Sample, aged_confidence, estimate, is_degraded
from evenflow.events import streams
from evenflow.events.contracts.agent import LinkSampled
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.contracts.inventory import NodeProbeRequested, NodeRegistered
from evenflow.events.contracts.link_probe import LinkDegraded, LinkEstimate, LinkRecovered
from evenflow.events.contracts.platform import AlertBody
from evenflow.platform.broker.codec import Fact
from evenflow.testkit.pool import Pool, run

GBIT = 10**9


def document(bandwidth: str = "10Gbit/s") -> Fact:
    body = {"from": "east", "to": "west", "bandwidth": bandwidth, "round_trip_ms": 30, "price_per_gb": "0.02"}
    return Fact(streams.POLICIES, DocumentPublished(kind="link", name="east..west", version=1, document=body))


def node(name: str, site: str) -> Fact:
    fields: dict[str, Any] = {"reach": "ok", "administration": "open", "health": "ok", "session": "s"}
    body = NodeRegistered(node=name, revision=1, document={"id": name, "site": site}, **fields)
    return Fact(streams.NODES, body)


def sample(bandwidth_bits: int, *, reachable: bool = True, source: str = "east", target: str = "west") -> Fact:
    body = LinkSampled(
        from_site=source,
        to_site=target,
        node="n1",
        at_ms=0,
        reachable=reachable,
        round_trip_us=30_000,
        bandwidth_bits=bandwidth_bits,
    )
    return Fact(streams.PROBES, body, key="n1")


async def newest(pool: Pool, source: str = "east", target: str = "west") -> LinkEstimate:
    found = await pool.bodies(streams.LINKS, LinkEstimate)
    estimates: list[LinkEstimate] = [b for b in found if (b.from_site, b.to_site) == (source, target)]
    return estimates[-1]


def test_a_declared_link_counts_as_measured_both_ways_and_is_probed_from_each_side() -> None:
    """Nothing has to be probed before a link can be used; then each site's node is asked in turn."""

    async def story(pool: Pool) -> None:
        await pool.publish(document(), node("n1", "east"), node("n2", "west"))
        await pool.start("link-probe", probe_period_ms=60_000)
        assert (await newest(pool)).bandwidth_bits == 10 * GBIT
        assert (await newest(pool, "west", "east")).price_per_gb_micro == 20_000
        await pool.pass_s(61)
        asked = await pool.bodies(streams.NODE_REQUESTS, NodeProbeRequested)
        assert sorted((a.node, a.to_site) for a in asked) == [("n1", "west"), ("n2", "east")]

    run(story)


def test_a_slowed_link_is_flagged_with_the_second_slow_sample_and_recovers_only_when_clearly_better() -> None:
    """S7: flagged within three probe periods; one odd sample changes nothing; hysteresis on the way back."""

    async def story(pool: Pool) -> None:
        await pool.publish(document())
        await pool.start("link-probe")
        await pool.publish(sample(GBIT))
        assert not (await newest(pool)).degraded
        await pool.publish(sample(GBIT))
        flagged = await newest(pool)
        assert isinstance(flagged, LinkDegraded)
        assert flagged.bandwidth_bits == GBIT
        for _ in range(3):
            await pool.publish(sample(8 * GBIT))
        assert (await newest(pool)).degraded
        for _ in range(3):
            await pool.publish(sample(9 * GBIT))
        assert not (await newest(pool)).degraded
        assert any(isinstance(body, LinkRecovered) for body in await pool.bodies(streams.LINKS))
        alerts = await pool.bodies(streams.ALERTS, AlertBody)
        assert [(str(a.TYPE), a.subject) for a in alerts] == [
            ("alert.raised", "east/west"),
            ("alert.cleared", "east/west"),
        ]

    run(story)


def test_an_unreachable_link_is_believed_after_two_samples() -> None:
    """One lost probe is not a lost link."""

    async def story(pool: Pool) -> None:
        await pool.publish(document())
        await pool.start("link-probe")
        await pool.publish(sample(0, reachable=False))
        assert (await newest(pool)).reachable
        await pool.publish(sample(0, reachable=False))
        assert not (await newest(pool)).reachable

    run(story)


def test_a_sample_of_an_undeclared_link_is_parked() -> None:
    """A link without a document has no price and no baseline."""

    async def story(pool: Pool) -> None:
        await pool.publish(document())
        await pool.start("link-probe")
        await pool.publish(sample(GBIT, source="north"))
        assert len(await pool.dead_letters(streams.PROBES)) == 1

    run(story)


def test_estimates_survive_a_restart() -> None:
    """What was measured before a restart is not overwritten by what was declared."""

    async def story(pool: Pool) -> None:
        await pool.publish(document())
        await pool.start("link-probe")
        for _ in range(3):
            await pool.publish(sample(2 * GBIT))
        await pool.stop("link-probe")
        await pool.start("link-probe")
        await pool.pass_s(3)
        assert (await newest(pool)).bandwidth_bits == 2 * GBIT
        await pool.publish(sample(2 * GBIT))
        assert (await newest(pool)).sample_count == 4

    run(story)


def one(bandwidth_bits: int) -> Sample:
    return Sample(0, reachable=True, round_trip_us=1, jitter_us=0, loss_ppm=0, bandwidth_bits=bandwidth_bits)


def test_confidence_falls_with_scatter_and_with_age_but_never_to_nothing() -> None:
    """Three equal samples are certain; scattered ones and old ones are not."""

    def of(*widths: int) -> int:
        return estimate([one(width) for width in widths]).confidence_ppm

    assert of(100, 100, 100) == 1_000_000
    assert of(90, 100, 110) == 800_000
    assert of(1, 100, 1000) == 50_000
    assert aged_confidence(1_000_000, age_ms=1_200, half_life_ms=600) == 250_000
    assert aged_confidence(1_000_000, age_ms=10**9, half_life_ms=600) == 50_000


VERDICTS = [(69, False, True), (71, False, False), (84, True, True), (86, True, False)]


@pytest.mark.parametrize(("bits", "was", "now"), VERDICTS)
def test_the_verdict_has_hysteresis_between_seventy_and_eighty_five_percent(bits: int, was: bool, now: bool) -> None:
    """Between the bounds the verdict stays what it was."""
    found = estimate([one(bits)])
    assert is_degraded(found, baseline_bits=100, baseline_us=1, was=was) is now
