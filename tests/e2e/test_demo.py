"""The demo as a user runs it, on its first arrivals: both worlds, their figures, and the same bytes again."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
from tests.e2e.conftest import ENVIRONMENT, EVENFLOW, ROOT

TASKS = 60
WORLDS = ("joined", "isolated")


def demo(folder: Path, *options: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
    command = [*EVENFLOW, "demo", "--out", str(folder), "--tasks", str(TASKS), *options]
    environment = {**ENVIRONMENT, **surroundings}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, cwd=folder.parent, check=False
    )


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "out"
    done = demo(folder, "-o", "json", PYTHONHASHSEED="1", TZ="UTC")
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_quick_look_ends_well_and_prints_what_it_keeps(first):
    """Proves that both worlds run to their end with every invariant held, and print the figures they keep."""
    folder, printed = first
    figures = json.loads(printed)
    assert figures == json.loads((folder / "figures.json").read_text())
    for world in WORLDS:
        told = figures[world]
        assert (told["submitted"], told["succeeded"]) == (TASKS, TASKS - told["impossible_at_home"])
        assert told["bill_chain_whole"]
        assert sum(told["bill_micro"].values()) > 0
        summary = json.loads((folder / world / "summary.json").read_text())
        assert summary["violations"] == []


def test_every_figure_follows_from_the_kept_log(first):
    """Proves the figures a second time, by a program that knows nothing of the product."""
    folder, printed = first
    spec = importlib.util.spec_from_file_location("recompute", ROOT / "tests" / "demo" / "recompute.py")
    recompute = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(recompute)
    for world in WORLDS:
        problems: list[str] = []
        found, _ = recompute.world(folder / world / "events.jsonl")
        recompute.compare(world, json.loads(printed)[world], found, problems)
        assert problems == []


def test_other_surroundings_change_no_byte_of_the_log(first, tmp_path):
    """Proves that hash seed, time zone, folder and the form of the output leave no trace in either world's log."""
    again = tmp_path / "another" / "folder" / "out"
    again.parent.mkdir(parents=True)
    done = demo(again, PYTHONHASHSEED="4711", TZ="Asia/Shanghai")
    assert done.returncode == 0, done.stderr
    assert "isolated" in done.stdout
    for world in WORLDS:
        one, other = first[0] / world / "events.jsonl", again / world / "events.jsonl"
        assert one.stat().st_size > 100_000
        assert one.read_bytes() == other.read_bytes(), world


def test_a_folder_that_can_not_be_written_is_said_at_once(tmp_path):
    """Proves exit code 1 and the file's name when a world's folder can't be made."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "joined").write_text("in the way")
    done = demo(folder)
    assert done.returncode == 1
    assert "out/joined can't be written" in done.stdout.replace("\n", "")
    assert not (folder / "figures.json").exists()


def test_a_world_that_fails_ends_the_other_and_says_why(tmp_path):
    """Proves exit code 1 with the world's name and its problem, without waiting for the other world."""
    log = tmp_path / "out" / "isolated" / "events.jsonl"
    log.mkdir(parents=True)
    done = demo(tmp_path / "out")
    assert done.returncode == 1
    assert "the isolated world failed (exit 1)" in done.stdout
    assert "IsADirectoryError" in done.stdout
    assert not (tmp_path / "out" / "figures.json").exists()
