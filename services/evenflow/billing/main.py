"""Billing's composition root: metering on handlers, the ledger on its own consumer and producers."""

from __future__ import annotations

from evenflow.billing.handlers import subscribe
from evenflow.billing.ledger import GROUP, Ledger
from evenflow.billing.projection import PolicyInForce
from evenflow.billing.settings import BillingSettings
from evenflow.billing.stores import LedgerViews
from evenflow.core.errors import Unavailable
from evenflow.events import streams
from evenflow.platform.observability.signals import LEDGER_VIEW
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import EventService, Step


def build(runtime: Runtime, settings: BillingSettings) -> EventService:
    """Put billing together."""
    host = EventService(runtime)
    policy = PolicyInForce()
    views = LedgerViews(runtime)
    ledger = Ledger(runtime, settings, policy.current, host.end)
    host.follow([streams.POLICIES], policy.apply)
    views.lost = host.follow([streams.BILLING], views.apply, pace=views.make_room, past=[streams.BILLING]).read_again
    host.parts.append(ledger)
    subscribe(host)

    async def flush() -> None:
        try:
            await views.flush()
        except Unavailable as error:
            runtime.log.warning("view not written", problem=str(error))

    async def measure() -> None:
        runtime.metrics.of(LEDGER_VIEW).record(views.waiting_count)

    host.measures.append(measure)
    host.more_groups.append(GROUP)
    host.steps = [Step("flush", settings.flush_period_ms, flush)]
    return host
