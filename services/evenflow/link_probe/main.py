"""Link-probe's composition root."""

from __future__ import annotations

from collections import Counter

from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.link_probe.handlers import subscribe
from evenflow.link_probe.service import LinkProbe, LinkState
from evenflow.link_probe.settings import LinkProbeSettings
from evenflow.link_probe.stores import LinkViews
from evenflow.platform.observability.signals import LINK_AGE, LINKS
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import EventService, Step

AGINGS_PER_HALF_LIFE = 20


def build(runtime: Runtime, settings: LinkProbeSettings) -> EventService:
    """Put link-probe together."""
    host = EventService(runtime)
    probe = LinkProbe(runtime, settings)
    views = LinkViews(runtime, probe)
    host.follow([streams.NODES, streams.POLICIES, streams.LINKS], probe.follow)
    subscribe(host, probe)

    async def declare() -> None:
        await host.outlet.publish(*probe.declare())
        try:
            await views.flush()
        except Unavailable as error:
            runtime.log.warning("view not written", problem=str(error))

    async def age() -> None:
        await host.outlet.publish(*probe.age())

    async def ask() -> None:
        await host.outlet.publish(*probe.ask())

    async def measure() -> None:
        links, now_ms = probe.links.values(), runtime.clock.now_ms()
        states = Counter(link.state for link in links)
        for state in LinkState:
            runtime.metrics.of(LINKS).record(states[state], state=state)
        oldest_ms = min((link.sampled_ms for link in links), default=now_ms)
        runtime.metrics.of(LINK_AGE).record(max(0, now_ms - oldest_ms) // 1000)

    host.measures.append(measure)
    host.restore = declare
    host.work_alone(settings.session_timeout_ms)
    aging_ms = max(settings.declare_period_ms, settings.confidence_half_life_ms // AGINGS_PER_HALF_LIFE)
    host.steps = [
        Step("declare", settings.declare_period_ms, declare),
        Step("age", aging_ms, age),
        Step("ask", settings.probe_period_ms, ask),
    ]
    return host
