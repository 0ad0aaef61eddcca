"""The table of reconciling: every pair of desired and held, and what follows."""

from __future__ import annotations

import pytest

from evenflow.core.lifecycle.attempt import Wish
from evenflow.core.running.reconciling import Act, HeldMember, Wanted, reconcile
from evenflow.core.running.saving import PERIOD_MS_MIN, LastMove, last_move, save_period_ms


def want(attempt: int = 1, wish: Wish = Wish.RUN, epoch: int = 1, slot: str = "d/t/0") -> Wanted:
    return Wanted(f"{slot}#{attempt}", slot, attempt, epoch, wish)


def hold(attempt: int = 1, wish: Wish = Wish.RUN, epoch: int = 1, *, reclaimed: bool = False) -> HeldMember:
    return HeldMember(f"d/t/0#{attempt}", "d/t/0", attempt, epoch, wish, reclaimed)


RUN, STOP, RECLAIM = Wish.RUN, Wish.STOP, Wish.RECLAIM


@pytest.mark.parametrize(
    ("wanted", "held", "newest", "acts"),
    [
        ([], [], {}, []),
        ([want()], [], {}, [Act.START]),
        ([want()], [hold()], {"d/t/0": 1}, []),
        ([want()], [hold(wish=STOP)], {"d/t/0": 1}, []),
        ([want()], [hold(reclaimed=True)], {"d/t/0": 1}, []),
        ([want(wish=STOP)], [hold()], {"d/t/0": 1}, [Act.STOP]),
        ([want(wish=STOP)], [hold(wish=STOP)], {"d/t/0": 1}, []),
        ([want(wish=RECLAIM)], [hold()], {"d/t/0": 1}, [Act.RECLAIM]),
        ([want(wish=RECLAIM)], [hold(wish=STOP)], {"d/t/0": 1}, [Act.RECLAIM]),
        ([want(wish=STOP)], [hold(wish=RECLAIM)], {"d/t/0": 1}, []),
        ([want(wish=RECLAIM)], [hold(reclaimed=True)], {"d/t/0": 1}, []),
        ([want(wish=STOP)], [], {}, [Act.ANSWER]),
        ([want(wish=RECLAIM)], [], {"d/t/0": 2}, [Act.ANSWER]),
        ([want(epoch=1)], [hold(epoch=2)], {"d/t/0": 1}, [Act.REFUSE]),
        ([want(wish=STOP, epoch=1)], [hold(epoch=2)], {"d/t/0": 1}, [Act.REFUSE]),
        ([want(epoch=3)], [hold(epoch=2)], {"d/t/0": 1}, []),
        ([want(1)], [], {"d/t/0": 2}, [Act.REFUSE]),
        ([want(1)], [], {"d/t/0": 1}, [Act.REFUSE]),
        ([want(2)], [], {"d/t/0": 1}, [Act.START]),
        ([], [hold()], {"d/t/0": 1}, [Act.STOP]),
        ([], [hold(wish=STOP)], {"d/t/0": 1}, []),
        ([], [hold(reclaimed=True)], {"d/t/0": 1}, [Act.FORGET]),
        ([want(2)], [hold(1, reclaimed=True)], {"d/t/0": 1}, [Act.FORGET, Act.START]),
        ([want(2)], [hold(1)], {"d/t/0": 1}, [Act.STOP]),
        ([want(2)], [hold(1, wish=STOP)], {"d/t/0": 1}, []),
        ([want(2), want(1, RECLAIM)], [hold(1)], {"d/t/0": 1}, [Act.RECLAIM]),
        ([want(2), want(1)], [], {}, [Act.REFUSE, Act.START]),
    ],
)
def test_each_pair_of_desired_and_held_has_its_action(wanted, held, newest, acts):
    """Proves the table: starts once, stops what is not desired, never goes back, one living attempt a slot."""
    assert [action.act for action in reconcile(wanted, held, newest)] == acts


def test_a_set_with_holes_stops_and_forgets_nothing():
    """Proves that a part of the desired set is never taken for the whole."""
    assert reconcile([], [hold(), hold(2, reclaimed=True)], {}, complete=False) == []


def test_other_slots_do_not_wait_for_one_another():
    """Proves that a blocked slot holds up no other one, and that ends come before starts."""
    actions = reconcile([want(2), want(1, slot="d/u/0")], [hold(1)], {"d/t/0": 1})
    assert [(action.act, action.key) for action in actions] == [(Act.STOP, "d/t/0#1"), (Act.START, "d/u/0#1")]


@pytest.mark.parametrize(
    ("left_ms", "grace_ms", "saves", "cost_ms", "move"),
    [
        (5_000, 10_000, True, 0, LastMove.FINISH),
        (10_000, 10_000, True, 0, LastMove.FINISH),
        (10_001, 10_000, True, 2_000, LastMove.SAVE),
        (10_001, 10_000, True, 10_001, LastMove.STOP),
        (None, 10_000, True, 0, LastMove.SAVE),
        (5_000, 10_000, False, 0, LastMove.STOP),
        (0, 0, True, 0, LastMove.STOP),
    ],
)
def test_a_stop_finishes_or_saves_only_within_its_grace(left_ms, grace_ms, saves, cost_ms, move):
    """Proves the choice at its edges."""
    assert last_move(left_ms=left_ms, grace_ms=grace_ms, saves=saves, cost_ms=cost_ms) is move


def test_the_automatic_save_period_grows_with_the_root_of_its_cost():
    """Proves the published formula at a round figure and its floor."""
    assert save_period_ms(None, 5_000) == 929_516
    assert save_period_ms(None, 0) == PERIOD_MS_MIN
    assert save_period_ms(60_000, 5_000) == 60_000


def test_an_attempt_that_can_not_be_is_refused_and_stops_nothing_else():
    """Proves that attempt 0 of a slot that nothing was ever applied to gets an answer instead of an error."""
    odd = Wanted("default/odd/0/0", "default/odd/0", 0, 1, Wish.RUN)
    good = Wanted("default/good/1/0", "default/good/0", 1, 1, Wish.RUN)
    actions = reconcile([odd, good], [], {})
    assert [(action.act, action.key) for action in actions] == [(Act.REFUSE, odd.key), (Act.START, good.key)]
