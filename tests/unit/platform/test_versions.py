"""Agents two minor versions back work; older and newer ones are told what to do."""

from __future__ import annotations

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.platform.versions import Version, check_agent_version, is_compatible, parse_version


@pytest.mark.parametrize(
    ("agent", "works"),
    [
        ("1.5.9", True),
        ("1.4", True),
        ("1.3.0rc1", True),
        ("1.2.9", False),
        ("1.6.0", False),
        ("2.5", False),
        ("0.5", False),
    ],
)
def test_two_minor_versions_back_work(agent: str, works: bool) -> None:
    """Patches never matter; another major never works."""
    assert is_compatible(agent=agent, server="1.5.3") is works
    if works:
        check_agent_version(agent=agent, server="1.5.3")
    else:
        with pytest.raises(FieldRefused, match=r"upgrade"):
            check_agent_version(agent=agent, server="1.5.3")


def test_a_young_server_takes_every_earlier_minor() -> None:
    """Below two there is nothing to refuse."""
    assert is_compatible(agent="1.0.0", server="1.1.0")
    with pytest.raises(FieldRefused, match=r"upgrade it to 1\.0 to 1\.1"):
        check_agent_version(agent="0.9", server="1.1.0")


def test_versions_compare_by_number() -> None:
    """1.10 is after 1.9."""
    assert parse_version("1.10.0") > parse_version("1.9") == Version(1, 9)
    assert is_compatible(agent="1.9", server="1.10")


@pytest.mark.parametrize(
    "text", ["", "1", "v1.2", "1.2.3.4.5x ", "01.2", "1.02", "1.-2", "\u0661.\u0662", "1.2\n", "1." + "9" * 9]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    """With the field's name."""
    with pytest.raises(FieldRefused, match=r"^version: "):
        parse_version(text)
