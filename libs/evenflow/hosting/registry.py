"""Every service by name, with its settings and its composition root. Nothing else lists the services.

A service's modules are loaded when they are asked for, so that a process of one service starts without the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from evenflow.platform.runtime import Runtime
from evenflow.platform.service import Service
from evenflow.platform.settings import Settings


@dataclass(frozen=True, slots=True)
class ServiceKind:
    """One kind of service, of which `package` holds `settings` and `main`.

    `operations_port` is where a process of its own answers those who keep it running, unless told otherwise.
    """

    name: str
    package: str
    settings_class: str
    operations_port: int

    @property
    def settings(self) -> type[Settings]:
        """The class of its settings."""
        found: type[Settings] = getattr(import_module(f"{self.package}.settings"), self.settings_class)
        return found

    @property
    def build(self) -> Callable[[Runtime, Any], Service]:
        """Makes one incarnation of a runtime and an instance of `settings`."""
        found: Callable[[Runtime, Any], Service] = import_module(f"{self.package}.main").build
        return found


#: In the order of their start.
SERVICES: Final[dict[str, ServiceKind]] = {
    kind.name: kind
    for kind in (
        ServiceKind("inventory", "evenflow.inventory", "InventorySettings", 7081),
        ServiceKind("link-probe", "evenflow.link_probe", "LinkProbeSettings", 7082),
        ServiceKind("placement", "evenflow.placement", "PlacementSettings", 7083),
        ServiceKind("billing", "evenflow.billing", "BillingSettings", 7084),
        ServiceKind("checkpoint", "evenflow.checkpoint", "CheckpointSettings", 7085),
        ServiceKind("gateway", "evenflow.gateway", "GatewaySettings", 7086),
        ServiceKind("console", "evenflow.console", "ConsoleSettings", 7087),
    )
}
