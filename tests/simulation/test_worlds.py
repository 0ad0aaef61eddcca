"""Worlds: one seed, the same bytes, whatever the interpreter, the machine and the worlds before; faults are real."""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenflow.sim.command import run_files
from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.world.running import Run, RunResult

ROOT = Path(__file__).parents[2]
FILES = ("events.jsonl", "timeline.jsonl", "usage.jsonl", "ledger.jsonl", "summary.json")

FAULTY = """
version: 1
name: faulty
until: 200
sites: [{id: east, store: true}]
nodes: [{id: "n{i}", site: east, devices: {model: a100-80g, count: 2}, copies: 3, price_per_hour: "3.60"}]
queues: [{id: q, limit: {devices: 4}}]
steps:
  - {at: 0, service: {add: placement}}
  - at: 0
    repeat:
      every_s: 2
      times: 12
      submit: {id: "t{i}", queue: q, resources: {devices: {share: 0.5}}, run: {work_s: 9}}
  - {at: 1, submit: {id: g, members: 3, resources: {devices: {count: 1}}, run: {work_s: 20}, checkpoint: {every_s: 5}}}
  - {at: 5, deliver: {topic: evenflow.runs.v1, action: duplicate, times: 10, after_s: 1}}
  - {at: 8, service: {kill: placement, which: leader}}
  - {at: 12, node: {kill: n1}}
  - {at: 14, cut: {node: n2}}
  - {at: 22, join: {node: n2}}
  - {at: 25, service: {restart: placement}}
  - {at: 30, store: {wipe: documents}}
  - {at: 32, node: {restart: n1}}
  - {at: 35, service: {pause: billing}}
  - {at: 50, service: {restart: all}}
  - {at: 60, settle: {}}
expect:
  - {all: "t*", are: succeeded, by: 190}
  - {by: 190, task: g, is: succeeded}
  - {at: 195, queue: q, used: {devices: 0}}
"""


def run(text: str, *, seed: int, out: Path | None = None) -> RunResult:
    """One run of a scenario text."""
    return Run(parse_scenario(text.encode(), seed=seed), out=out).go()


def digest(folder: Path) -> str:
    """All bytes of a run's files."""
    found = hashlib.sha256()
    for name in FILES:
        found.update((folder / name).read_bytes())
    return found.hexdigest()


@pytest.mark.parametrize("seed", range(3))
def test_a_world_full_of_faults_keeps_every_invariant_and_ends(seed: int) -> None:
    """Crashes, a cut, duplicates, a wiped store, a restart of everything: all tasks end, nothing is broken."""
    result = run(FAULTY, seed=seed)
    assert [broken.row() for broken in result.broken] == []
    assert [violation.row() for violation in result.violations] == []


DOWNLINK = """
version: 1
until: 120
nodes: [{id: n1, devices: {model: a100-80g, count: 2}}]
steps:
  - {at: 0, deliver: {topic: evenflow.dispatch.v1, match: {task: held}, action: hold, times: 1, after_s: 20}}
  - {at: 0, deliver: {topic: evenflow.dispatch.v1, match: {task: twice}, action: duplicate, copies: 3}}
  - {at: 1, submit: {id: held, run: {work_s: 5}}}
  - {at: 1, submit: {id: twice, run: {work_s: 5}}}
  - {at: 50, settle: {}}
expect:
  - {at: 15, task: held, is: starting}
  - {at: 15, task: twice, is: succeeded}
  - {by: 30, task: held, is: succeeded}
  - {between: [0, 120], count: started, min: 2, max: 2}
  - {task: held, attempts: 1, starts: {max: 1}}
"""


def test_desired_state_can_be_held_and_doubled_on_its_way_to_the_node() -> None:
    """The rules act between gateway and agent, so a member starts once, late or told four times."""
    result = run(DOWNLINK, seed=1)
    assert [broken.row() for broken in result.broken] == []
    assert [violation.row() for violation in result.violations] == []


def test_the_same_seed_gives_the_same_bytes_in_any_interpreter(tmp_path: Path) -> None:
    """Other hash seeds, zones, folders and a stirred heap change nothing; another seed does."""
    (tmp_path / "faulty.yaml").write_text(FAULTY)
    program = (
        "import random, sys; from pathlib import Path; junk = [object() for _ in range(random.randrange(50_000))];"
        "from evenflow.sim.command import run_files;"
        "run_files([Path(sys.argv[1])], seed=int(sys.argv[2]), out=Path(sys.argv[3]), write=lambda _line: None)"
    )
    digests = []
    for number, (hash_seed, zone, seed) in enumerate((("0", "UTC", 7), ("42", "Asia/Shanghai", 7), ("7", "UTC", 8))):
        out = tmp_path / f"out{number}" / "deeper"
        environment = {
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "TZ": zone,
            "PYTHONPATH": f"{ROOT / 'libs'}{os.pathsep}{ROOT / 'services'}",
        }
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "faulty.yaml"), str(seed), str(out)],
            check=True,
            env=environment,
            cwd=tmp_path,
            timeout=120,
        )
        digests.append(digest(out))
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]


def test_a_world_after_other_worlds_is_the_same_world(tmp_path: Path) -> None:
    """In one interpreter, with the collector frantic, off and as usual, and other seeds in between."""
    digests = []
    for number, (seed, threshold) in enumerate(((3, 700), (4, 50), (3, 50), (3, 0))):
        gc.set_threshold(threshold)
        try:
            run(FAULTY, seed=seed, out=tmp_path / str(number))
        finally:
            gc.set_threshold(700)
        digests.append(digest(tmp_path / str(number)))
    assert digests[0] == digests[2] == digests[3]
    assert digests[0] != digests[1]


def test_worlds_leave_no_objects_behind() -> None:
    """Four worlds more hold no more objects than the ones before."""

    def held() -> int:
        for _ in range(3):  # what a finalizer touched is freed by the next collection
            gc.collect()
        return len(gc.get_objects())

    short = FAULTY.replace("until: 200", "until: 40").split("  - {at: 50, ")[0]
    for seed in range(3):
        run(short, seed=seed)
    before = held()
    for seed in range(3, 7):
        run(short, seed=seed)
    assert held() - before < 2_000


def test_files_and_seeds_end_with_the_documented_codes_and_folders(tmp_path: Path) -> None:
    """0 holds, 1 does not, 2 wrong, 3 planned; one run writes into the folder, several into stem/seed."""
    texts = {
        "good": "version: 1\nuntil: 5\nnodes: [{id: n1}]\nexpect: [{at: 1, node: n1, reach: ok}]\n",
        "bad": "version: 1\nuntil: 5\nnodes: [{id: n1}]\nexpect: [{at: 1, node: n1, reach: lost}]\n",
        "wrong": "version: 1\nuntil: 5\nwheels: 4\n",
        "planned": "version: 1\nuntil: 5\nsteps: [{at: 1, resize: {task: t, members: 2}}]\n",
    }
    files = {name: tmp_path / f"{name}.yaml" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    lines: list[str] = []

    def code(*names: str, repeat: int = 1, out: Path | None = None) -> int:
        paths = [files[name] for name in names]
        return run_files(paths, seed=1, repeat=repeat, out=out, as_json=True, write=lines.append)

    assert [code("good"), code("bad"), code("wrong"), code("planned")] == [0, 1, 2, 3]
    assert code("good", "planned", "wrong", "bad") == 1
    assert code("good", out=tmp_path / "one") == 0
    assert (tmp_path / "one" / "summary.json").is_file()
    assert code("good", repeat=2, out=tmp_path / "many") == 0
    assert (tmp_path / "many" / "good" / "2" / "events.jsonl").is_file()
    assert '"expect":0' in lines[1]
