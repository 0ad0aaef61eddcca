"""The lock: every package pinned with its hashes, every direct dependency in it, no address of any registry."""

from __future__ import annotations

import re
import tomllib

HASHES_MIN = 1


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(text: str) -> dict[str, tuple[str, int]]:
    """Name → (version, number of hashes) of every entry of a lock."""
    entries = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)((?:.*\\\n)(?:    --hash=\S+.*\n)*)", text, flags=re.MULTILINE)
    return {canonical(name): (version, body.count("--hash=sha256:")) for name, version, body in entries}


def test_every_package_is_pinned_with_its_hashes(root):
    """Proves that an install takes exactly the files the lock was made from."""
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    entries = pinned(text)
    assert len(entries) == len(re.findall(r"^[A-Za-z0-9]", text, flags=re.MULTILINE))
    assert [name for name, (_, hashes) in entries.items() if hashes < HASHES_MIN] == []


def test_every_direct_dependency_is_locked(root):
    """Proves that pyproject and lock name the same packages, and that exact pins agree."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    entries = pinned((root / "requirements.lock").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [line for lines in project["project"]["optional-dependencies"].values() for line in lines]
    for line in wanted:
        name, _, rest = re.match(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?(.*)", line).groups()
        assert canonical(name) in entries, f"{name} is not locked: run make lock"
        if rest.startswith("=="):
            assert entries[canonical(name)][0] == rest.removeprefix("==")


def test_the_lock_names_no_address(root):
    """Proves that packages come from wherever the user's own tools point."""
    text = (root / "requirements.lock").read_text(encoding="utf-8")
    assert [line for line in text.splitlines() if "://" in line or "index-url" in line or "find-links" in line] == []
