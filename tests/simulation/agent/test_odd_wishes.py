"""A wish that can't be followed, whatever is in it, keeps the node from nothing else."""

from __future__ import annotations

from evenflow.events.contracts.placement import DeviceShare


def test_figures_beyond_every_device_are_declined_and_the_node_goes_on(play):
    """Proves that a place nobody could hold is refused and freed, and that what is desired beside it runs."""

    async def main(world):
        await world.run()
        odd = world.desired("odd")
        shares = (DeviceShare(index=0, milli=2**53), DeviceShare(index=1, milli=2**53))
        place = odd.place.model_copy(update={"devices": shares})
        await world.desire(odd.model_copy(update={"place": place}), world.desired("good"))
        await world.at(100)

    world = play(main)
    assert [kind for _, kind in world.receipts("odd")] == ["refused", "reclaimed"]
    assert [kind for _, kind in world.receipts("good")][-2:] == ["succeeded", "reclaimed"]


def test_a_wish_that_breaks_while_it_is_followed_is_set_aside_and_told_once(play):
    """Proves that an error about one wish ends no agent: it is logged once, and the others are followed."""

    async def main(world):
        agent = await world.run()
        follow = agent._act

        async def act(action):
            if "/odd/" in action.key:
                raise ValueError("can't be followed")
            await follow(action)

        agent._act = act
        await world.desire(world.desired("odd"), world.desired("good", device=1))
        await world.at(30)
        await world.desire(world.desired("more", specification={"run": {"work_s": 5}}, milli=0))
        await world.at(100)

    world = play(main)
    assert [kind for _, kind in world.receipts("good")][-1] == "reclaimed"
    assert [kind for _, kind in world.receipts("more")][-1] == "reclaimed"
    assert [line for line in world.log.lines if "wish set aside" in line and "can't be followed" in line] != []
    assert len([line for line in world.log.lines if "wish set aside" in line]) == 1
