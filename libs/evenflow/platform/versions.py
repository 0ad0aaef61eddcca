"""This installation's version, and which agents may join: the same major version, at most two minor ones behind."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Final, NamedTuple

from evenflow.core.errors import FieldRefused

MINORS_BACK: Final = 2

_FORM: Final = re.compile(
    r"(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})(?:\.(?:0|[1-9][0-9]{0,4}))?(?:[-+.a-z][0-9a-z.+-]{0,40})?"
)


class Version(NamedTuple):
    """What compatibility rests on; patches never matter."""

    major: int
    minor: int


def installed() -> str:
    """The installed version of the distribution."""
    try:
        return metadata.version("evenflow")
    except metadata.PackageNotFoundError:
        return "unknown"


def parse_version(text: str) -> Version:
    """major.minor of 1.4, 1.4.2 or 1.4.2rc1; FieldRefused otherwise."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise FieldRefused("version", f"{text!a:.60} is no version such as 1.4.2")
    return Version(int(match.group(1)), int(match.group(2)))


def is_compatible(*, agent: str, server: str) -> bool:
    """True when an agent of that version works with this server."""
    a, s = parse_version(agent), parse_version(server)
    return a.major == s.major and s.minor - MINORS_BACK <= a.minor <= s.minor


def check_agent_version(*, agent: str, server: str) -> None:
    """FieldRefused with the way out when the agent is too old or newer than the server."""
    if is_compatible(agent=agent, server=server):
        return
    a, s = parse_version(agent), parse_version(server)
    mine, theirs = f"{a.major}.{a.minor}", f"{s.major}.{s.minor}"
    if a > s:
        raise FieldRefused("version", f"agent {mine} is newer than {theirs}; upgrade the servers first")
    oldest = f"{s.major}.{max(0, s.minor - MINORS_BACK)}"
    raise FieldRefused("version", f"agent {mine} is too old; upgrade it to {oldest} to {theirs}")
