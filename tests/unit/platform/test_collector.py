"""What long-lived values cost the collector."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, gc
from evenflow.platform import collector
collector.FULL_PASS_MIN = 200_000
collector.tune_collector()
collector.tune_collector()
assert sum("Survivors" in type(one).__name__ for one in gc.callbacks) == 1

class Node:
    pass

async def main():
    passes = []
    gc.callbacks.append(lambda phase, info: passes.append(info["generation"]) if phase == "start" else None)
    before = gc.get_freeze_count()
    kept = [[number] for number in range(60_000)]
    assert gc.get_freeze_count() - before > 40_000, "survivors were not set aside"
    lost = Node()
    lost.itself = lost
    import weakref
    gone = weakref.ref(lost)
    del lost
    kept += [[number] for number in range(300_000)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 2 in passes, "no full pass"
    assert gone() is None, "a cycle stayed"
    assert len(gc.get_objects()) < 100_000, "survivors of the full pass are not set aside"

asyncio.run(main())
"""

QUIET = """
from evenflow.platform import collector
collector.tune_collector()

class Node:
    alive = most = 0

    def __init__(self):
        self.itself = self
        Node.alive += 1
        Node.most = max(Node.most, Node.alive)

    def __del__(self):
        Node.alive -= 1

for _ in range(60_000):
    Node()
assert Node.most <= 6_000, f"{Node.most} cycles waited"
"""


def test_survivors_are_set_aside_and_cycles_go():
    """Proves that long-lived values leave the scans, and that a full pass over them comes when they have doubled."""
    _run(PROGRAM)


def test_few_cycles_wait_for_a_look() -> None:
    """Found: twenty thousand values, with all that hung on them, waited for minutes in a process that made few."""
    _run(QUIET)


def _run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
