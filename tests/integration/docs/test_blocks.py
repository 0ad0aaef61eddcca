"""The pages whose commands need the real servers, several processes among them: each block in order, in one folder."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.e2e.docs import blocks

from evenflow.testkit.servers.local import CACHE_VARIABLE, cache_folder
from evenflow.testkit.servers.process import free_ports

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("page", [page for page in blocks.ON_SERVERS if blocks.commands(page)])
def test_the_commands_of_a_page_work(page: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Proves that who copies them from top to bottom has running servers, services, and what the page shows."""
    folder = blocks.checkout(tmp_path)
    console, gateway = free_ports(2)
    environment = {
        CACHE_VARIABLE: str(cache_folder(pytestconfig.rootpath)),
        "EVENFLOW_HOST_CONSOLE_PORT": str(console),
        "EVENFLOW_HOST_GATEWAY_PORT": str(gateway),
        "EVENFLOW_HOST_OPERATIONS_PORT": "0",  # other programs of this machine may hold the usual ones
        "EVENFLOW_URL": f"http://127.0.0.1:{console}",
    }
    replaced = {"http://127.0.0.1:7071": f"http://127.0.0.1:{gateway}"}
    try:
        for block in blocks.commands(page):
            blocks.run(block, folder, environment, within_s=150, replaced=replaced)
    finally:
        subprocess.run([folder / ".venv/bin/python", "-m", "evenflow.testkit.servers", "down"], cwd=folder, check=False)
