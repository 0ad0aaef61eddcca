"""Which revision `make upgrade` begins with, how it is unpacked, and that its judgement can fail."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from evenflow.core.errors import Refused
from evenflow.hosting.registry import SERVICES
from evenflow.testkit.processes.upgrade import STARTABLE, Replaced, Upgrade, earlier_revision, unpacked


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(root: Path, **files: str) -> str:
    """Write files, named by their paths with / as __, and commit them; the commit."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "one")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def startable(text: str) -> dict[str, str]:
    return {STARTABLE.replace("/", "__").removesuffix(".py") + ".py": text}


def test_it_begins_before_the_last_change_of_a_shared_form(root: Path) -> None:
    """Proves that a change of schemas is what the run goes over."""
    commit(root, **startable("1"))
    before = commit(root, schemas__avro__a="1")
    commit(root, schemas__avro__a="2")
    commit(root, other="3")
    assert before.startswith(earlier_revision(root))


def test_it_begins_no_earlier_than_processes_can_be_started(root: Path) -> None:
    """Proves that a change from before does not name a tree that nobody can run."""
    commit(root, schemas__avro__a="1")
    commit(root, schemas__avro__a="2")
    since = commit(root, **startable("1"))
    commit(root, **startable("2"))
    assert since.startswith(earlier_revision(root))


def test_the_newest_tag_goes_first(root: Path) -> None:
    """Proves that a released version is what one upgrades from."""
    commit(root, **startable("1"))
    git(root, "tag", "v0.1.0")
    commit(root, schemas__avro__a="1")
    assert earlier_revision(root) == "v0.1.0"


def test_a_tree_is_unpacked_and_an_unknown_one_refused(root: Path, tmp_path: Path) -> None:
    """Proves that the earlier code alone is on the path, and that a wrong REV is named."""
    commit(root, libs__a="1", services__b="2", schemas__c="3", secret="4")
    tree = unpacked(root, "HEAD", tmp_path / "earlier")
    assert tree["PYTHONPATH"].split(":") == [str(tmp_path / "earlier" / name) for name in ("libs", "services")]
    assert not (tmp_path / "earlier" / "secret").exists()
    with pytest.raises(Refused, match="REV=nowhere"):
        unpacked(root, "nowhere", tmp_path / "none")


def test_a_folder_without_history_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proves that an unpacked archive does not upgrade from nothing."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Refused, match="REV="):
        earlier_revision(tmp_path)


def test_anything_parked_lost_or_left_is_a_complaint() -> None:
    """Proves that each bad end is said, and a good one says nothing."""
    good = Upgrade("v1", 5, [Replaced(name, 1, 2) for name in SERVICES], left={"tasks": 0})
    assert good.complaints == []
    assert len(good.rows()) > len(SERVICES)
    for bad in (
        Upgrade("v1", 5, good.replaced, parked=1),
        Upgrade("v1", 5, good.replaced, left={"tasks": 2}),
        Upgrade("v1", 5, good.replaced, audit_failed=True),
        Upgrade("v1", 5, good.replaced[1:]),
    ):
        assert len(bad.complaints) == 1
