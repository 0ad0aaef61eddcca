"""The API's own description, schemas/openapi.json: written from the console's routes, and compared with them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

from evenflow.console.api.guard import Guard
from evenflow.console.main import build
from evenflow.console.settings import ConsoleSettings
from evenflow.hosting.surroundings import HostSettings, Surroundings

FILE: Final = "schemas/openapi.json"


def openapi_text() -> str:
    """The description as it stands in the file: sorted keys, a line end behind the last line."""
    return json.dumps(asyncio.run(_described()), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


async def _described() -> dict[str, Any]:
    """A console that is put together and never started knows its routes."""
    surroundings = Surroundings(HostSettings(documents="memory:", live="memory:"))
    try:
        guard = build(surroundings.runtime("console"), ConsoleSettings()).app
        assert isinstance(guard, Guard)  # noqa: S101  the console's composition root puts it there
        found: dict[str, Any] = guard.app.openapi()  # type: ignore[attr-defined]  # it guards a FastAPI application
    finally:
        await surroundings.close()
    return found


def write_openapi(root: Path) -> list[str]:
    """Write the file where it differs; the path if it was written."""
    path, text = root / FILE, openapi_text()
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return []
    path.write_text(text, encoding="utf-8")
    return [FILE]


def check_openapi(root: Path) -> list[str]:
    """Say whether the file differs from the routes."""
    path = root / FILE
    if not path.exists():
        return [f"{FILE}: is missing; run make schemas"]
    if path.read_text(encoding="utf-8") != openapi_text():
        return [f"{FILE}: differs from the console's routes; run make schemas"]
    return []
