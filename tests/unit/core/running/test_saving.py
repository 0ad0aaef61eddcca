"""When progress is saved, and what a member does with a stop's grace."""

from __future__ import annotations

import pytest

from evenflow.core.running.saving import PERIOD_MS_MIN, LastMove, last_move, save_period_ms


def test_the_period_is_the_tasks_own_or_follows_from_the_cost() -> None:
    """What was written counts, never less than a millisecond; auto grows with the cost's root, from a minute on."""
    assert [save_period_ms(every, 5) for every in (0, 1, 30_000)] == [1, 1, 30_000]
    assert save_period_ms(None, 0) == PERIOD_MS_MIN
    assert save_period_ms(None, 60_000) == 3_219_937
    assert save_period_ms(None, 4 * 60_000) == 6_439_875


@pytest.mark.parametrize(
    ("left_ms", "grace_ms", "saves", "cost_ms", "move"),
    [
        (10, 10, True, 5, LastMove.FINISH), (11, 10, True, 5, LastMove.SAVE), (11, 10, True, 10, LastMove.SAVE),
        (11, 10, True, 11, LastMove.STOP), (None, 10, True, 5, LastMove.SAVE), (0, 0, True, 0, LastMove.STOP),
        (5, 10, False, 0, LastMove.STOP),
    ],
)  # fmt: skip
def test_a_grace_is_used_for_the_most_that_fits(
    left_ms: int | None, grace_ms: int, saves: bool, cost_ms: int, move: LastMove
) -> None:
    """Finish if the rest fits, else save if that fits, else stop; without checkpoint or grace always stop."""
    assert last_move(left_ms=left_ms, grace_ms=grace_ms, saves=saves, cost_ms=cost_ms) is move
