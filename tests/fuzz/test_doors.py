"""A fixed part of the fuzzing of both doors: every route, every answer documented and clear, never 5xx."""

from __future__ import annotations

from evenflow.testkit.fuzz.doors import fuzz_doors
from evenflow.testkit.fuzz.requests import routes

COUNT = 600


def test_every_route_of_both_doors_answers_as_documented():
    """Proves for a fixed seed: documented statuses, refusals that say what is wrong, services that live on."""
    figures = fuzz_doors(COUNT, 1, lambda _: None)
    assert not figures.problems, "\n".join(figures.problems)
    assert len(figures.routes) == len(routes())
    answers = [status for counts in figures.routes.values() for status in counts]
    assert max(answers) < 500
    assert {200, 201, 202, 204, 400, 401, 404, 422} <= set(answers)
