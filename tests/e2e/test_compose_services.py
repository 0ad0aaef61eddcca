"""docker-compose.yml as its services meet it: commands, environment, secrets, and whom each waits for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenflow.hosting.registry import SERVICES

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yml"
MOUNTED = "/run/secrets/"
#: Makes a folder and ends: the one container of the file that begins as root, without network.
ONCE = ("object-folder",)
#: The image holds nothing that could look.
WITHOUT_LOOK = ("otel", *ONCE)


def interpolated(text: str) -> str:
    """As an engine reads it where the environment names nothing: `${NAME:-default}`, and `$$` for a dollar."""
    return re.sub(r"\$\$|\$\{\w+:-([^}]*)\}", lambda found: found[1] if found[1] is not None else "$", text)


def parsed(text: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(interpolated(text))
    return document


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return parsed(FILE.read_text(encoding="utf-8"))


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Entries that run a service of the product, by name."""
    return {name: entry for name, entry in compose["services"].items() if entry["image"].startswith("evenflow")}


def checked(entry: dict[str, Any], secrets: Path) -> subprocess.CompletedProcess[str]:
    """The entry's command with its environment, and `--check-config`, in a process of its own: nothing is opened."""
    mounted = {name: (secrets / name) for name in entry.get("secrets", ())}
    told = {}
    for name, value in entry["environment"].items():
        if value.startswith(MOUNTED):
            value = str(mounted.get(value.removeprefix(MOUNTED), value))  # noqa: PLW2901  where the engine mounts it
        told[name] = value
    return subprocess.run(
        [sys.executable, "-m", "evenflow.cli", *entry["command"], "--check-config"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT / 'services'}", **told},
        cwd=secrets, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture
def secrets(compose: dict[str, Any], tmp_path: Path) -> Path:
    """Every secret that the file declares, by name."""
    for name in compose["secrets"]:
        (tmp_path / name).write_text("0" * 64, encoding="utf-8")
    return tmp_path


def test_every_service_is_in_the_file_and_placement_twice(compose: dict[str, Any]) -> None:
    """Proves that the file starts a whole pool with a standby."""
    commands = sorted(entry["command"][1] for entry in ours(compose).values())
    assert commands == sorted([*SERVICES, "placement"])
    for entry in ours(compose).values():
        port = str(SERVICES[entry["command"][1]].operations_port)
        assert entry["environment"]["EVENFLOW_HOST_OPERATIONS_PORT"] == port
        assert port in entry["expose"]


def test_every_command_and_environment_passes_check_config(compose: dict[str, Any], secrets: Path) -> None:
    """Proves that no service of the file would end at once for a wrong name, URL or value."""
    entries = ours(compose)
    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(entries, pool.map(lambda entry: checked(entry, secrets), entries.values()), strict=True))
    for name, one in ended.items():
        assert one.returncode == 0, (name, one.stdout, one.stderr)
        assert f"the settings of {entries[name]['command'][1]} are right" in one.stdout
        assert f"host.log = {entries[name]['environment']['EVENFLOW_HOST_LOG']}" in one.stdout
        assert "0" * 64 not in one.stdout


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("EVENFLOW_HOST_LIVE", "EVENFLOW_HOST_LIFE", "EVENFLOW_HOST_LIFE"),
        ("secrets: [gateway-token]", "secrets: []", "token"),
        ("[run, gateway]", "[run, gatway]", "gatway"),
    ],
)
def test_a_wrong_entry_does_not_pass(secrets: Path, old: str, new: str, said: str) -> None:
    """Proves that the check above can fail: a wrong name, a secret that is not mounted, no such service."""
    text = FILE.read_text(encoding="utf-8")
    assert old in text
    ended = checked(parsed(text.replace(old, new))["services"]["gateway"], secrets)
    assert ended.returncode == 2, (ended.stdout, ended.stderr)
    assert said in ended.stderr


def test_starts_wait_for_health(compose: dict[str, Any]) -> None:
    """Proves that whoever is waited for can say that it is well, and that each service waits for its servers."""
    services = compose["services"]
    for name, entry in services.items():
        assert ("healthcheck" in entry) is (name not in WITHOUT_LOOK), name
        for other, how in entry.get("depends_on", {}).items():
            healthy = how["condition"] == "service_healthy"
            assert healthy or other in ONCE, (name, other)
            assert not healthy or "healthcheck" in services[other], (name, other)
    for name, entry in ours(compose).items():
        assert set(entry["depends_on"]) == {"kafka", "redis", "mongodb", "objects"}, name


def test_servers_are_named_as_the_file_names_them(compose: dict[str, Any]) -> None:
    """Proves that every host in a URL is an entry of the file."""
    for name, entry in ours(compose).items():
        urls = [value for value in entry["environment"].values() if "://" in value]
        hosts = re.findall(r"(?:kafka|redis|mongodb|http)://([a-z-]+):\d+", " ".join(urls))
        assert len(hosts) >= len(urls), (name, urls)
        assert [host for host in hosts if host not in compose["services"]] == [], name


def test_secrets_are_files_and_stand_nowhere(compose: dict[str, Any]) -> None:
    """Proves that a password comes from a file or from the caller's environment, and that its file is made."""
    text = FILE.read_text(encoding="utf-8")
    made = (ROOT / "deploy/docker/make-secrets").read_text(encoding="utf-8")
    for name, secret in compose["secrets"].items():
        assert secret["file"] == f"./deploy/docker/secrets/{name}"
        assert name in made
    for name, entry in compose["services"].items():
        for variable, value in entry.get("environment", {}).items():
            if not re.search(r"PASSWORD|SECRET|TOKEN", variable):
                continue
            if variable.endswith("FILE"):
                assert value.removeprefix(MOUNTED) in entry["secrets"], (name, variable)
            else:
                assert re.search(rf"{variable}: \$\{{", text), (name, variable)


def test_missing_secrets_are_made_once(tmp_path: Path) -> None:
    """Proves that the script makes what is absent, closes the folder, and leaves what is there alone."""
    script = tmp_path / "make-secrets"
    script.write_bytes((ROOT / "deploy/docker/make-secrets").read_bytes())
    for _ in range(2):
        subprocess.run(["sh", str(script)], check=True, cwd="/", timeout=20)
        (tmp_path / "secrets/gateway-token").write_text("mine", encoding="utf-8")
    assert (tmp_path / "secrets/gateway-token").read_text() == "mine"
    assert re.fullmatch("[0-9a-f]{64}", (tmp_path / "secrets/grafana-password").read_text())
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
