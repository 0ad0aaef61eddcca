"""The tree as the tidy tests see it: every file of the repository, and every Python file parsed once."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Source:
    """One Python file: its path from the root, its text and, when asked for, its syntax tree."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @property
    def is_product(self) -> bool:
        return self.path.startswith(("libs/", "services/"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> list[str]:
    """Paths of all files that are in the repository or about to be: ignored ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    if listed.returncode == 0:
        paths = [path for path in listed.stdout.split("\0") if path]
    else:  # an unpacked archive has no history
        hidden = (".git", ".venv", ".cache")
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        paths = [str(path) for path in found if path.parts[0] not in hidden and "__pycache__" not in path.parts]
    return sorted(path for path in dict.fromkeys(paths) if (ROOT / path).is_file())


@pytest.fixture(scope="session")
def sources(tracked: list[str]) -> list[Source]:
    """Every Python file under libs, services and tests."""
    roots = ("libs/", "services/", "tests/")
    chosen = [path for path in tracked if path.endswith(".py") and path.startswith(roots)]
    return [Source(path, (ROOT / path).read_text(encoding="utf-8")) for path in chosen]


@pytest.fixture(scope="session")
def product(sources: list[Source]) -> list[Source]:
    """Every Python file that ships."""
    return [source for source in sources if source.is_product]
