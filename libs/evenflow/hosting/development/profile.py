"""Where `evenflow dev` has its log and stores: in the process, or on the servers that `make up PROFILE=local` left."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evenflow.core.errors import Refused
from evenflow.hosting.surroundings import HostSettings, in_folder
from evenflow.platform.settings import load_settings

EMBEDDED: Final = "embedded"
LOCAL: Final = "local"
PROFILES: Final = (EMBEDDED, LOCAL)
#: What `make up PROFILE=local` writes, below the folder in which it was called.
ADDRESSES: Final = Path(".cache") / "local-servers" / "environment"
#: What simulated nodes and the gateway keep for themselves, beside the servers' data.
BESIDE: Final = Path(".cache") / "local-servers" / "dev"
SERVERS: Final = ("EVENFLOW_HOST_LOG", "EVENFLOW_HOST_DOCUMENTS", "EVENFLOW_HOST_LIVE", "EVENFLOW_HOST_OBJECTS")
#: The object store's client looks for its keys in the environment.
KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def host_settings(profile: str, folder: Path | None, environment: Mapping[str, str]) -> HostSettings:
    """Of the shared settings the environment says how much of an embedded log stays in memory; the rest is ours.

    With the profile `local` the environment names the servers too, or the file that `make up PROFILE=local` wrote.
    Raises Refused for an unknown profile, and when no servers are named.
    """
    if profile not in PROFILES:
        raise Refused(f"profile {profile[:40]!a} is unknown; known are {', '.join(PROFILES)}")
    named = {name: value for name, value in environment.items() if name == "EVENFLOW_HOST_LOG_CACHE_BYTES"}
    if profile == LOCAL:
        named |= _servers(environment)
    settings = load_settings(HostSettings, "host", environment=named)
    return in_folder(folder, settings) if profile == EMBEDDED and folder is not None else settings


def own_folder(profile: str, folder: Path | None) -> Path | None:
    """Where secrets and simulated nodes are kept; None = nowhere."""
    kept = BESIDE if folder is None and profile == LOCAL else folder
    if kept is not None:
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
    return kept


def _servers(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: environment[name] for name in SERVERS if environment.get(name)}
    if not found and ADDRESSES.is_file():
        kept = dict(_rows(ADDRESSES.read_text(encoding="utf-8")))
        found = {name: kept[name] for name in SERVERS if name in kept}
        os.environ.update({name: kept[name] for name in KEYS if name in kept})
    missing = [name for name in SERVERS if name not in found]
    if missing:
        raise Refused(f"--profile local needs servers ({', '.join(missing)}): start them with make up PROFILE=local")
    return found


def _rows(text: str) -> list[tuple[str, str]]:
    """`export NAME='value'`, as a shell reads it."""
    pairs = [shlex.split(line)[-1].partition("=") for line in text.splitlines() if line.startswith("export ")]
    return [(name, value) for name, _, value in pairs]
