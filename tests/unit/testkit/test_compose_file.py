"""What the Compose specification does not ask, but this file promises: pins, users, loopback, limits, health."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from evenflow.testkit.servers.engine import URLS

#: Runs once as root to hand a volume over, then ends; nothing listens in it.
ONCE = ("object-folder",)


@pytest.fixture
def compose(pytestconfig: pytest.Config) -> dict[str, Any]:
    return yaml.safe_load((pytestconfig.rootpath / "docker-compose.yml").read_text(encoding="utf-8"))


def lasting(compose: dict[str, Any]) -> dict[str, Any]:
    return {name: service for name, service in compose["services"].items() if name not in ONCE}


def test_every_image_is_pinned_to_a_release(compose):
    """Proves that no image is whatever its registry calls newest today."""
    images = [service["image"] for service in compose["services"].values()]
    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+", image)] == []


def test_no_lasting_service_runs_as_root_or_without_limits(compose):
    """Proves an ordinary user, no more rights than it has, and a bound on memory and processors for each."""
    for name, service in lasting(compose).items():
        assert not str(service["user"]).startswith("0"), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"], name
        assert service["cpus"], name


def test_every_lasting_service_says_when_it_is_healthy(compose):
    """Proves that `up --wait` waits for answers, not for processes."""
    assert [name for name, service in lasting(compose).items() if not service.get("healthcheck", {}).get("test")] == []


def test_ports_are_open_on_loopback_alone(compose):
    """Proves that servers without passwords are not offered to a network."""
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


def test_whatever_a_service_names_is_there(compose):
    """Proves that no service waits for one, or mounts a volume, that the file does not declare."""
    for name, service in compose["services"].items():
        assert set(service.get("depends_on", {})) <= set(compose["services"]), name
        mounted = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert mounted <= set(compose["volumes"]), name


def test_the_suites_look_where_the_file_publishes(compose):
    """Proves that a run on an engine's servers asks the ports that the compose file opens."""
    published = [port.rpartition(":")[0] for service in lasting(compose).values() for port in service["ports"]]
    for url in URLS.values():
        assert any(address in url for address in published), url
