"""Everything in one process on loopback: what `evenflow dev` does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evenflow.agent.clients.exchange import Direct
from evenflow.hosting.composition import Composition
from evenflow.hosting.development.fleet import Fleet
from evenflow.hosting.development.keeping import kept_secret
from evenflow.hosting.development.load import World
from evenflow.hosting.development.profile import EMBEDDED, LOCAL, host_settings, own_folder
from evenflow.hosting.registry import SERVICES
from evenflow.hosting.signals import until_told
from evenflow.hosting.surroundings import Surroundings
from evenflow.platform.collector import tune_collector
from evenflow.platform.security.join_tokens import system_bytes
from evenflow.platform.settings import load_settings

HEARTBEAT_MS: Final = 5_000
TOKEN_BYTES: Final = 32

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DevOptions:
    """What the command line says; port 0 = any."""

    folder: Path | None = None
    console_port: int = 7070
    gateway_port: int = 7071
    load: bool = True
    agents: bool = True
    seed: int = 1
    verbose: bool = False
    profile: str = EMBEDDED


def run_dev(options: DevOptions) -> int:
    """Run until told to stop; returns the exit code. Raises Refused when a port or the folder is in use."""
    return asyncio.run(_run(options))


async def _run(options: DevOptions) -> int:
    told = until_told()
    dev = Development(options)
    try:
        starting = asyncio.create_task(dev.start())
        waiting = asyncio.create_task(told.wait())
        await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            tune_collector()
            for line in dev.greeting():
                _print(line)
            await waiting
            _print("stopping …")
        waiting.cancel()
        starting.cancel()
    finally:
        await dev.stop()
    return 0


class Development:
    """The process: services, doors, simulated nodes, load."""

    def __init__(self, options: DevOptions) -> None:
        self.options = options
        settings = host_settings(options.profile, options.folder, os.environ).with_changes(
            console_port=options.console_port,
            gateway_port=options.gateway_port,
            level="info" if options.verbose else "error",
        )
        self._folder = own_folder(options.profile, options.folder)
        self.surroundings = Surroundings(settings)
        self.composition = Composition(self.surroundings)
        self.composition.add_doors("console", "gateway")
        chosen = self._service_settings()
        self._owner_token: str = chosen["console"].owner_token.get_secret_value()
        self.token: str = chosen["gateway"].token.get_secret_value()
        self.composition.add_services(chosen)
        self.fleet: Fleet | None = None
        if options.agents:
            folder = None if self._folder is None else self._folder / "nodes"
            gateway = self.composition.doors["gateway"]
            self.fleet = Fleet(self.surroundings, lambda: Direct(lambda: gateway.app), self.token, folder)
            fleet = self.fleet
            self.composition.supervisor.add(fleet.name, lambda: fleet)
        self.composition.supervisor.add("neighbourhood", self._world)

    def _service_settings(self) -> dict[str, Any]:
        """Quicker than the defaults: a lost node is noticed in seconds. The environment has the last word."""
        folder = self._folder
        secret = "" if folder is None else kept_secret(folder / "gateway.secret")
        token = system_bytes(TOKEN_BYTES).hex() if folder is None else kept_secret(folder / "join.token")
        quicker: dict[str, dict[str, Any]] = {
            "gateway": {"token": token, "secret": secret, "heartbeat_ms": HEARTBEAT_MS},
            "inventory": {
                "heartbeat_period_ms": HEARTBEAT_MS,
                "suspect_after_ms": 2 * HEARTBEAT_MS + 1_000,
                "silence_tolerance_ms": 4 * HEARTBEAT_MS,
                "hold_off_ms": 2 * HEARTBEAT_MS,
            },
        }
        return {
            name: load_settings(kind.settings, name, environment=_under(os.environ, name, quicker.get(name, {})))
            for name, kind in SERVICES.items()
        }

    def _world(self) -> World:
        return World(
            self.composition.doors["console"],
            self.surroundings.clock,
            self.surroundings.logger("neighbourhood"),
            token=self._owner_token,
            seed=self.options.seed,
            load=self.options.load and self.options.agents,
        )

    async def start(self) -> None:
        """Start everything; returns when it serves and shows its nodes."""
        await self.composition.start()
        if self.fleet is not None:
            await self.fleet.until_seen()

    async def stop(self) -> None:
        """Stop everything."""
        await self.composition.stop()
        if self.fleet is not None:
            self.fleet.close()

    @property
    def console_url(self) -> str:
        """Where the API answers."""
        return self.composition.servers["console"].url

    @property
    def gateway_url(self) -> str:
        """Where agents join."""
        return self.composition.servers["gateway"].url

    def greeting(self) -> list[str]:
        """Where to look next, with the token by which machines join."""
        option = "" if self.console_url.endswith(":7070") else f" --url {self.console_url}"
        kept = "nothing is kept after the end"
        if self.options.profile == LOCAL:
            kept = f"on {self.surroundings.settings.log} and its stores"
        elif self.options.folder:
            kept = f"everything is kept in {self.options.folder}"
        return [
            f"Evenflow is ready: {self.console_url}/api/v1 ({kept})",
            "",
            "Look around from another terminal:",
            f"  evenflow nodes{option}",
            f"  evenflow list{option}",
            f"  evenflow events -f{option}",
            f"  evenflow submit FILE{option}",
            "",
            "Join a real machine, or several (the token lets any machine in while this runs):",
            f"  evenflow agent --url {self.gateway_url} --token {self.token}",
            "",
            "Ctrl-C stops it.",
        ]


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201  the command's own output


def _under(environment: Mapping[str, str], service: str, base: Mapping[str, Any]) -> dict[str, str]:
    """The environment with `base` under it, as a service's variables."""
    prefix = f"EVENFLOW_{service}_".replace("-", "_").upper()
    return {**{f"{prefix}{name.upper()}": str(value) for name, value in base.items()}, **environment}
