"""What the Compose specification does not ask, but this file promises: pins, users, loopback, limits, health."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from evenflow.testkit.servers.engine import URLS

#: Runs once as root to hand a volume over, then ends; nothing listens in it.
ONCE = ("object-folder",)
#: The collector's image holds nothing that could ask.
MUTE = ("otel",)
#: Writes into its own installation at each start.
WRITES_ROOT = ("kafka", *ONCE)
#: Rules and dashboards; until they are there, their two containers start with nothing to watch by.
TO_COME = ("./deploy/prometheus", "./deploy/grafana")
#: Built from this tree, so of no registry.
OWN = "${EVENFLOW_IMAGE:-evenflow:dev}"


@pytest.fixture
def compose(pytestconfig: pytest.Config) -> dict[str, Any]:
    return yaml.safe_load((pytestconfig.rootpath / "docker-compose.yml").read_text(encoding="utf-8"))


def lasting(compose: dict[str, Any]) -> dict[str, Any]:
    return {name: service for name, service in compose["services"].items() if name not in ONCE}


def test_every_image_is_pinned_to_a_release(compose):
    """Proves that no image is whatever its registry calls newest today."""
    images = [service["image"] for service in compose["services"].values()]
    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+", image) and image != OWN] == []


def test_no_lasting_service_runs_as_root_or_without_limits(compose):
    """Proves an ordinary user, no more rights than it has, and a bound on memory and processors for each."""
    for name, service in lasting(compose).items():
        assert not str(service["user"]).startswith("0"), name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["mem_limit"], name
        assert service["cpus"], name
        assert "privileged" not in service, name


def test_no_service_but_kafka_writes_to_its_own_installation(compose):
    """Proves that what runs there can't be changed from inside."""
    for name, service in compose["services"].items():
        assert service.get("read_only", False) is (name not in WRITES_ROOT), name


def test_every_lasting_service_says_when_it_is_healthy(compose):
    """Proves that `up --wait` waits for answers, not for processes."""
    mute = [name for name, service in lasting(compose).items() if not service.get("healthcheck", {}).get("test")]
    assert mute == list(MUTE)


def test_ports_are_open_on_loopback_alone(compose):
    """Proves that servers without passwords are not offered to a network."""
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []
    outside = [port.split(":")[1] for port in ports]
    assert sorted(outside) == sorted(set(outside))


def test_whatever_a_service_names_is_there(compose, pytestconfig):
    """Proves that no service waits for one, or mounts a volume or a file, that is not there."""
    for name, service in compose["services"].items():
        assert set(service.get("depends_on", {})) <= set(compose["services"]), name
        mounted = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        ours = {path for path in mounted if path.startswith("./")}
        assert mounted - ours <= set(compose["volumes"]), name
        absent = [path for path in ours if not (pytestconfig.rootpath / path).exists()]
        assert [path for path in absent if not path.startswith(TO_COME)] == [], name


def test_the_suites_look_where_the_file_publishes(compose):
    """Proves that a run on an engine's servers asks the ports that the compose file opens."""
    published = [port.rpartition(":")[0] for service in lasting(compose).values() for port in service.get("ports", ())]
    for url in URLS.values():
        assert any(address in url for address in published), url
