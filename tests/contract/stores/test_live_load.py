"""The behaviour suite of the LiveLoad port."""

from __future__ import annotations

import pytest

from evenflow.core.errors import Refused
from evenflow.platform.stores import limits
from evenflow.platform.stores.ports import LiveLoad

EVERY_BYTE = bytes(range(256)) * 3


async def test_a_frame_comes_back_byte_for_byte_with_its_writers_time(live: LiveLoad) -> None:
    """Frames are binary, and the time is the writer's argument, not the store's clock."""
    assert await live.put_frame("east", EVERY_BYTE, written_ms=1_234) == 1
    assert await live.frames(["east"]) == {"east": (1, 1_234, EVERY_BYTE)}


async def test_each_write_raises_the_version_by_one_per_site(live: LiveLoad) -> None:
    """A reader sees by the version alone whether a site's frame changed; an empty frame is a frame."""
    for version in (1, 2, 3):
        assert await live.put_frame("east", b"", written_ms=version) == version
    assert await live.put_frame("west", b"w", written_ms=9) == 1
    assert await live.frames(["west", "east"]) == {"west": (1, 9, b"w"), "east": (3, 3, b"")}


async def test_sites_without_a_frame_are_absent(live: LiveLoad) -> None:
    """Asking for unknown sites, or for none, is no error."""
    await live.put_frame("east", b"e", written_ms=1)
    assert await live.frames(["north", "east"]) == {"east": (1, 1, b"e")}
    assert await live.frames([]) == {}


async def test_sites_come_in_order_of_name(live: LiveLoad) -> None:
    """The order does not depend on who wrote first."""
    assert await live.sites() == []
    for site in ("west", "a.b-1", "east"):
        await live.put_frame(site, b"", written_ms=1)
    assert await live.sites() == ["a.b-1", "east", "west"]


async def test_cleared_means_as_never_written(live: LiveLoad) -> None:
    """After clear nothing is found and versions start again."""
    await live.put_frame("east", b"e", written_ms=1)
    await live.put_frame("east", b"e", written_ms=2)
    await live.clear()
    assert await live.sites() == []
    assert await live.frames(["east"]) == {}
    assert await live.put_frame("east", b"n", written_ms=3) == 1


async def test_an_old_frame_never_expires(live: LiveLoad) -> None:
    """Age is for the reader to judge: a frame written at time 0 is still there."""
    await live.put_frame("east", b"old", written_ms=0)
    assert await live.frames(["east"]) == {"east": (1, 0, b"old")}


@pytest.mark.parametrize("site", ["", "a/b", "a b", "é", "*", "x" * 300])
async def test_a_bad_site_is_refused(live: LiveLoad, site: str) -> None:
    """A site's name becomes part of a key, so it is plain."""
    with pytest.raises(Refused):
        await live.put_frame(site, b"", written_ms=1)
    with pytest.raises(Refused):
        await live.frames([site])


async def test_an_oversized_frame_is_refused(live: LiveLoad, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is checked before the store is touched."""
    monkeypatch.setattr(limits, "FRAME_BYTES_MAX", 10)
    await live.put_frame("east", b"x" * 10, written_ms=1)
    with pytest.raises(Refused):
        await live.put_frame("east", b"x" * 11, written_ms=2)
    assert (await live.frames(["east"]))["east"][:2] == (1, 1)
