"""What every suite may ask for: real servers, found or started by the testkit."""

from __future__ import annotations

pytest_plugins = ("evenflow.testkit.servers.plugin",)
