"""The behaviour suite of the Objects port."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from evenflow.core.errors import Conflict, Refused
from evenflow.platform.stores.factory import open_objects
from evenflow.platform.stores.memory import MemoryObjects
from evenflow.platform.stores.ports import Absent, Damaged, Objects


async def test_bytes_come_back_as_written(objects: Objects) -> None:
    """Empty, binary and large objects (several parts of an upload) alike."""
    for path, data in {"a/empty": b"", "a/b/binary": bytes(range(256)), "large": b"z" * 12_000_001}.items():
        await objects.put(path, data)
        assert await objects.get(path) == data


async def test_a_put_replaces_and_a_create_does_not(objects: Objects) -> None:
    """create is decided by the store, so that of two writers one wins."""
    await objects.put("a", b"1")
    await objects.put("a", b"2")
    with pytest.raises(Conflict):
        await objects.put("a", b"3", create=True)
    assert await objects.get("a") == b"2"
    await objects.put("b", b"1", create=True)
    assert await objects.get("b") == b"1"


async def test_an_absent_path_is_a_key_error(objects: Objects) -> None:
    """get raises, delete does not."""
    with pytest.raises(KeyError):
        await objects.get("nothing/here")
    await objects.delete("nothing/here")
    await objects.put("a", b"1")
    await objects.delete("a")
    with pytest.raises(Absent, match=r"^a is absent$"):
        await objects.get("a")


async def test_paths_list_a_folder_in_order_whole_segments_only(objects: Objects) -> None:
    """A prefix is a folder: runs/1/ does not list runs/10; versions of named objects are not listed."""
    for path in ("runs/10/a", "runs/1/b", "runs/1/a", "runs/1/deep/c", "other"):
        await objects.put(path, b"")
    await objects.put_version("runs/1/named", b"x", {})
    assert await objects.paths("runs/1/") == ["runs/1/a", "runs/1/b", "runs/1/deep/c"]
    assert await objects.paths("") == ["other", "runs/1/a", "runs/1/b", "runs/1/deep/c", "runs/10/a"]
    assert await objects.paths("none/") == []


async def test_versions_are_numbered_and_kept(objects: Objects) -> None:
    """Each put_version adds one; every version can be read, and the newest is the default."""
    first = await objects.put_version("policy/default", b"one", {"by": "me"})
    second = await objects.put_version("policy/default", b"two", {})
    assert (first.number, second.number) == (1, 2)
    assert first.sha256 == hashlib.sha256(b"one").hexdigest()
    assert (first.size, dict(first.meta)) == (3, {"by": "me"})
    assert await objects.get_version("policy/default") == (b"two", second)
    assert await objects.get_version("policy/default", 1) == (b"one", first)
    assert await objects.versions("policy/default") == [first, second]


async def test_a_key_and_a_longer_key_have_their_own_versions(objects: Objects) -> None:
    """Keys nest like folders without mixing their numbers, whatever their segments look like."""
    keys = ["a", "a/b", "a/0000000001.json", "a/b/v"]
    for key in keys:
        await objects.put_version(key, key.encode(), {})
    for key in keys:
        data, version = await objects.get_version(key)
        assert (data, version.number) == (key.encode(), 1)


async def test_a_rollback_is_a_new_version(objects: Objects) -> None:
    """Nothing is removed; the new version says what it repeats."""
    await objects.put_version("p", b"one", {})
    await objects.put_version("p", b"two", {})
    third = await objects.rollback("p", 1, {"by": "me"})
    assert third.number == 3
    assert dict(third.meta) == {"by": "me", "rollback_of": 1}
    assert (await objects.get_version("p"))[0] == b"one"


async def test_an_absent_version_is_named(objects: Objects) -> None:
    """Unknown key, unknown number and rollback to one raise Absent."""
    with pytest.raises(Absent):
        await objects.get_version("p")
    assert await objects.versions("p") == []
    await objects.put_version("p", b"one", {})
    with pytest.raises(Absent, match="no version 2"):
        await objects.get_version("p", 2)
    with pytest.raises(Absent):
        await objects.rollback("p", 7, {})


async def test_concurrent_writers_get_different_numbers(objects: Objects) -> None:
    """Eight versions at once are eight numbers, none lost."""
    made = await asyncio.gather(*(objects.put_version("p", bytes([n]), {"n": n}) for n in range(8)))
    assert sorted(version.number for version in made) == list(range(1, 9))
    for version in made:
        assert (await objects.get_version("p", version.number))[0] == bytes([version.meta["n"]])


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", "../a", "a/..", "a/./b", "_blobs/a", "a\\b", "é", "a\0", "x" * 900]
)
async def test_a_bad_path_is_refused_by_every_call(objects: Objects, path: str) -> None:
    """No path leaves the root, reaches the store's own names or means different things on two backends."""
    with pytest.raises(Refused):
        await objects.put(path, b"")
    with pytest.raises(Refused):
        await objects.get(path)
    with pytest.raises(Refused):
        await objects.delete(path)
    with pytest.raises(Refused):
        await objects.put_version(path, b"", {})


@pytest.mark.parametrize("prefix", ["a", "/", "../", "a/../"])
async def test_a_bad_prefix_is_refused(objects: Objects, prefix: str) -> None:
    """A prefix is empty or ends in '/'."""
    with pytest.raises(Refused):
        await objects.paths(prefix)


async def test_a_changed_byte_in_memory_is_found_and_healed_by_the_next_put() -> None:
    """Reading verifies the digest; writing the same content again mends every version that shares it."""
    store = MemoryObjects()
    version = await store.put_version("p", b"content", {})
    blob = f"_blobs/{version.sha256[:2]}/{version.sha256}"
    for damaged in (b"cantent", b"conten"):
        store.lay(blob, damaged)
        with pytest.raises(ValueError, match="does not match its digest"):
            await store.get_version("p")
        with pytest.raises(Damaged):
            await store.rollback("p", 1, {})
    assert (await store.put_version("p", b"content", {})).number == 2
    assert (await store.get_version("p", 1))[0] == b"content"


async def test_a_changed_byte_on_disk_is_found(tmp_path: Path) -> None:
    """The same in the folder: a changed, a lost and an unreadable file each have their message."""
    store = open_objects(f"file://{tmp_path}")
    version = await store.put_version("p", b"content", {})
    blob = tmp_path / "_blobs" / version.sha256[:2] / version.sha256
    blob.write_bytes(b"cantent")
    with pytest.raises(Damaged, match="does not match"):
        await store.get_version("p")
    blob.unlink()
    with pytest.raises(Damaged, match="is gone"):
        await store.get_version("p")
    (tmp_path / "_versions" / "p" / "_" / "0000000001.json").write_bytes(b"[]")
    with pytest.raises(Damaged, match="unreadable manifest"):
        await store.versions("p")


async def test_a_stray_file_among_the_versions_is_passed_over(tmp_path: Path) -> None:
    """Editors and file managers leave such files."""
    store = open_objects(f"file://{tmp_path}")
    await store.put_version("p", b"one", {})
    (tmp_path / "_versions" / "p" / "_" / ".DS_Store").write_bytes(b"")
    (tmp_path / "_versions" / "p" / "_" / "0000000002.json~").write_bytes(b"")
    assert (await store.put_version("p", b"two", {})).number == 2


async def test_a_folder_keeps_its_objects_over_a_restart(tmp_path: Path) -> None:
    """Another instance on the same folder goes on counting."""
    await open_objects(f"file://{tmp_path}").put_version("p", b"one", {})
    again = open_objects(f"file://{tmp_path}")
    assert (await again.put_version("p", b"two", {})).number == 2
    assert (await again.get_version("p", 1))[0] == b"one"
