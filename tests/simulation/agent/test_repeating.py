"""What went missing on the way is made good: last receipts are told again, the desired set is read whole again."""

from __future__ import annotations

import itertools
import json

from evenflow.agent.settings import AgentSettings


def _reclaims(world) -> list[float]:
    return [round(at) for at, kind in world.receipts() if kind == "reclaimed"]


def test_a_last_receipt_is_told_again_until_its_wish_is_withdrawn(play):
    """Proves that a lost end heals by itself, with growing pauses, and that nothing is repeated once it was heard."""

    async def main(world):
        await world.run()
        await world.desire(world.desired(specification={"run": {"work_s": 10}}))
        await world.at(400)
        await world.undesire()
        await world.at(900)

    world = play(main)
    told = _reclaims(world)
    pauses = [after - before for before, after in itertools.pairwise(told)]
    assert told[0] == 11
    assert told[-1] < 400
    assert len(told) >= 3
    assert pauses == sorted(pauses)
    outcomes = [body.outcome for _, kind, body in world.said() if kind == "attempt.reclaimed"]
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_a_wish_that_went_missing_is_found_when_the_set_is_read_whole(play):
    """Proves that one change lost between gateway and agent delays its member, and costs nothing else."""

    async def main(world):
        world.settings = AgentSettings(whole_set_after_ms=60_000)
        exchange = world.exchange

        async def lossy(request, *, timeout_ms):
            answer = await exchange(request, timeout_ms=timeout_ms)
            told = json.loads(answer.body) if "/desired" in request.target else {}
            if world.loop.time() < 30 and told.get("items"):
                told["items"] = []
                return type(answer)(answer.status, json.dumps(told).encode())
            return answer

        world.exchange = lossy
        await world.run()
        await world.at(5)
        await world.desire(world.desired(specification={"run": {"work_s": 10}}))
        await world.at(150)

    receipts = play(main).receipts()
    assert [kind for _, kind in receipts][:2] == ["accepted", "staged"]
    assert 60 <= receipts[0][0] <= 120
