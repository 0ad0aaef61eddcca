"""What README and docs tell a reader to type works as it stands there, in a clean copy of the tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.conftest import ENVIRONMENT
from tests.e2e.docs import blocks
from tests.e2e.docs.blocks import IN_PART, LANGUAGES, LEFT_OUT, ON_SERVERS, Block

LEFT_OUT_MAX = 15
EVERY = [block for page in blocks.pages() for block in blocks.blocks(page)]
CONSOLE = "127.0.0.1:7070"


def of(language: str) -> list[Block]:
    return [block for block in EVERY if block.language == language]


def test_every_block_says_what_it_is() -> None:
    """Proves that no block escapes these tests by having no language or another one, and none stays open."""
    assert [f"{block.place} {block.language}" for block in EVERY if block.language not in LANGUAGES] == []
    assert [block.place for block in EVERY if block.marks not in ((), (IN_PART,))] == []
    assert [block.place for block in EVERY if block.marks and block.language != "sh"] == []


def test_what_is_left_out_is_short_and_still_there() -> None:
    """Proves that each command no test runs is named with its reason, stands in a marked block, and is one of few."""
    met: list[tuple[str, str]] = []
    for block in of("sh"):
        here = [entry for line in block.text.splitlines() if (entry := block.left_out(line))]
        assert bool(here) is (IN_PART in block.marks), block.place
        met += here
    assert sorted(met) == sorted(LEFT_OUT), "an entry matches no command, or more than one"
    assert all(LEFT_OUT.values())
    assert len(LEFT_OUT) <= LEFT_OUT_MAX


@pytest.mark.parametrize("page", [page for page in blocks.pages() if blocks.commands(page) and page not in ON_SERVERS])
def test_the_commands_of_a_page_work(page: str, tmp_path: Path, shared: Any) -> None:
    """Proves it block by block, in order, in one folder, beside a ready `evenflow dev`."""
    _, dev = shared
    folder = blocks.checkout(tmp_path)
    environment = {"EVENFLOW_URL": dev.console}
    for block in blocks.commands(page):
        blocks.run(block, folder, environment, within_s=200, replaced={f"http://{CONSOLE}": dev.console})


@pytest.mark.parametrize("block", of("python"), ids=lambda block: block.place)
def test_python_runs_to_its_end(block: Block, tmp_path: Path, shared: Any) -> None:
    """Proves that what a reader pastes into a file runs to its end beside a ready `evenflow dev`."""
    _, dev = shared
    (tmp_path / "pasted.py").write_text(block.text.replace(f"http://{CONSOLE}", dev.console), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "pasted.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, (block.place, done.stdout, done.stderr)
    assert done.stdout.strip()


def test_scenarios_of_the_pages_hold(tmp_path: Path, processes: Any) -> None:
    """Proves that each scenario of the docs is one, and holds."""
    found = [block for block in of("yaml") if "\nsteps:" in block.text]
    assert len(found) >= 2
    for number, block in enumerate(found):
        file = tmp_path / f"scenario-{number}.yaml"
        file.write_text(block.text, encoding="utf-8")
        processes.run("scenario", "run", str(file))


def test_a_block_that_fails_is_found(tmp_path: Path) -> None:
    """Proves that the checks above can fail: a command that fails in the middle, and one that does not end."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for text, said in (("echo one\nfalse\necho two\n", "ended with 1"), ("sleep 60\n", "ended with none after 1 s")):
        with pytest.raises(AssertionError, match=said):
            blocks.run(Block("p.md", 1, "sh", (), text), tmp_path, {}, within_s=1, replaced={})
