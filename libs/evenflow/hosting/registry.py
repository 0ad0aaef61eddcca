"""Every service by name, with its settings and its composition root. Nothing else lists the services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evenflow.billing.main import build as build_billing
from evenflow.billing.settings import BillingSettings
from evenflow.checkpoint.main import build as build_checkpoint
from evenflow.checkpoint.settings import CheckpointSettings
from evenflow.console.main import build as build_console
from evenflow.console.settings import ConsoleSettings
from evenflow.gateway.main import build as build_gateway
from evenflow.gateway.settings import GatewaySettings
from evenflow.inventory.main import build as build_inventory
from evenflow.inventory.settings import InventorySettings
from evenflow.link_probe.main import build as build_link_probe
from evenflow.link_probe.settings import LinkProbeSettings
from evenflow.placement.main import build as build_placement
from evenflow.placement.settings import PlacementSettings
from evenflow.platform.runtime import Runtime
from evenflow.platform.service import Service
from evenflow.platform.settings import Settings


@dataclass(frozen=True, slots=True)
class ServiceKind:
    """One kind of service. `build` takes the runtime and an instance of `settings`.

    `operations_port` is where a process of its own answers those who keep it running, unless told otherwise.
    """

    name: str
    settings: type[Settings]
    build: Callable[[Runtime, Any], Service]
    operations_port: int


#: In the order of their start.
SERVICES: Final[dict[str, ServiceKind]] = {
    kind.name: kind
    for kind in (
        ServiceKind("inventory", InventorySettings, build_inventory, 7081),
        ServiceKind("link-probe", LinkProbeSettings, build_link_probe, 7082),
        ServiceKind("placement", PlacementSettings, build_placement, 7083),
        ServiceKind("billing", BillingSettings, build_billing, 7084),
        ServiceKind("checkpoint", CheckpointSettings, build_checkpoint, 7085),
        ServiceKind("gateway", GatewaySettings, build_gateway, 7086),
        ServiceKind("console", ConsoleSettings, build_console, 7087),
    )
}
