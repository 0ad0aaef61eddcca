"""The manifest: what is written is read back, and anything else is refused instead of half believed."""

from __future__ import annotations

import dataclasses
import json

import pytest

from evenflow.core.checkpointing.manifest import (
    PARTS_MAX,
    Manifest,
    ManifestPart,
    folder,
    part_of,
    problem_of,
    read_manifest,
    task_folder,
    write_manifest,
)
from evenflow.core.errors import FieldRefused

PART = part_of("part-1", b"abc")
MANIFEST = Manifest("default", "t1", 2, 2, 7, 60_000, 3, (PART,))


def test_a_manifest_that_was_written_is_read_back() -> None:
    """Writing and reading are inverse, and the bytes of equal manifests are equal."""
    assert read_manifest(write_manifest(MANIFEST)) == MANIFEST
    assert write_manifest(MANIFEST) == write_manifest(dataclasses.replace(MANIFEST))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"null", b"1", b"{}", b"\xff", b"[" * 100_000,
        json.dumps({**json.loads(write_manifest(MANIFEST)), "parts": 3}).encode(),
        json.dumps({**json.loads(write_manifest(MANIFEST)), "parts": {"name": "x"}}).encode(),
        json.dumps({**json.loads(write_manifest(MANIFEST)), "attempt": "x"}).encode(),
        write_manifest(MANIFEST).replace(b'"progress_ms":60000', b'"progress_ms":Infinity'),
        write_manifest(MANIFEST).replace(b'"progress_ms":60000', b'"progress_ms":NaN'),
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    """Cut off, of another shape, nested to the sky or with numbers that are none: FieldRefused, nothing else."""
    with pytest.raises(FieldRefused, match="manifest: can't be read"):
        read_manifest(data)


def test_a_manifest_of_too_many_parts_is_refused_whole() -> None:
    """A part that nobody looks at would be a part that nobody misses."""
    parts = tuple(ManifestPart(f"part-{number}", 1, "00") for number in range(PARTS_MAX + 1))
    with pytest.raises(FieldRefused, match=r"names 10001 parts"):
        read_manifest(write_manifest(dataclasses.replace(MANIFEST, parts=parts)))


def test_every_harm_to_a_part_is_named() -> None:
    """Missing, cut and altered bytes are told apart; the right bytes have no problem."""
    assert problem_of(PART, None) == "part-1 is missing"
    assert problem_of(PART, b"ab") == "part-1 has 2 of 3 bytes"
    assert problem_of(PART, b"abd") == "part-1 has another digest"
    assert problem_of(PART, b"abc") == ""


def test_folders_sort_by_age() -> None:
    """Generation and number are padded, so that the order of names is the order of time."""
    names = [folder("default", "t1", generation, number) for generation, number in ((1, 9), (1, 10), (2, 1), (10, 1))]
    assert names == sorted(names)
    assert all(name.startswith(task_folder("default", "t1")) for name in names)
