"""Two placement processes of one pool on a real log: who leads, who follows, and what one that stood still may do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenflow.hosting.single import ENDED_FROM
from evenflow.platform.broker.transactions import FENCED
from evenflow.platform.clock import SystemClock
from evenflow.testkit.processes.take_over import take_overs
from evenflow.testkit.processes.zombie import zombie
from evenflow.testkit.servers.addresses import NEEDED

pytestmark = pytest.mark.servers
#: Longer than the seat's session of 6 s, shorter than the limit of a round of 10 s: the log's refusal shows first.
STAND_S = 9.0


@pytest.fixture
async def environment(own_servers: Any) -> dict[str, str]:
    found: dict[str, str] = (await own_servers.start(NEEDED)).host_environment()
    return found


async def test_the_standby_leads_soon_and_no_task_is_placed_twice(environment: dict[str, str], tmp_path: Path) -> None:
    """Once after a kill, once after a stop, with rounds in flight; `make takeover` does it twenty times."""
    found = await take_overs(2, tmp_path / "processes", environment, SystemClock(), lambda _: None)
    assert not found.complaints, found
    assert (len(found.killed_ms), len(found.stopped_ms), found.epochs) == (1, 1, 3)
    assert found.tasks > 100


async def test_a_leader_that_stood_still_commits_nothing_and_says_why(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """It stands between the records of a round and their commit until another leads."""
    found = await zombie(tmp_path / "processes", environment, SystemClock(), lambda _: None, stand_s=STAND_S)
    assert not found.complaints, found
    assert ("ProducerFenced" in found.said) == (found.exit_code == ENDED_FROM + FENCED)
