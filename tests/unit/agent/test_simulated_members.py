"""What a simulated member does, when, and what the agent says of it."""

from __future__ import annotations

import pytest

from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.lifecycle.causes import Cause


def test_a_member_starts_in_half_a_second_works_and_frees_its_place(play):
    """Proves the ordinary life: each receipt at its moment, figures exact to the millisecond."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 60}}))
        await world.at(100)

    world = play(main)
    assert [kind for _, kind in world.receipts()] == ["accepted", "staged", "started", "succeeded", "reclaimed"]
    times = dict((kind, at) for at, kind in world.receipts())
    assert times["started"] - times["staged"] == pytest.approx(0.5)
    assert times["succeeded"] - times["started"] == pytest.approx(60)
    assert times["reclaimed"] - times["succeeded"] == pytest.approx(0.5)
    outcome = world.body("reclaimed").outcome
    assert (outcome.ended_as, outcome.run_ms, outcome.start_ms, outcome.stop_ms) == ("succeeded", 60_000, 500, 500)
    assert world.log.lines == []
