"""docker-compose.yml by the Compose specification's own reader, built from source."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenflow.core.errors import Refused
from evenflow.testkit.servers.compose import check_compose
from evenflow.testkit.servers.local import cache_folder

pytestmark = pytest.mark.servers


def check(text: str, root: Path, folder: Path) -> None:
    file = folder / "docker-compose.yml"
    file.write_text(text, encoding="utf-8")
    check_compose(file, root, cache_folder(root), lambda _: None)


def test_the_compose_file_is_one_by_its_specification(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Proves that an engine would take the file as it stands."""
    root = pytestconfig.rootpath
    check((root / "docker-compose.yml").read_text(encoding="utf-8"), root, tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    healthcheck:\n", "    healthchecks:\n"),
        ("restart: unless-stopped", "restart: [unless-stopped]"),
        ("      retries: 12", "      retries: often"),
        ("condition: service_completed_successfully", "condition: service_done"),
    ],
)
def test_a_wrong_compose_file_is_refused(pytestconfig: pytest.Config, tmp_path: Path, old: str, new: str) -> None:
    """Proves that the check above can fail: unknown keys, wrong types, unknown conditions."""
    root = pytestconfig.rootpath
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(Refused, match="is no compose file"):
        check(text.replace(old, new, 1), root, tmp_path)
