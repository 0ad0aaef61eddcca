"""Reading keeps nothing of what it read: values are mostly ids that never come again."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from evenflow.events.contract import Part
from evenflow.events.envelope import TRACES_MAX, _trace_of, traceparent_of
from evenflow.gateway.bodies import Body


def kinds_below(base: type[BaseModel]) -> list[type[BaseModel]]:
    """A class and all that are made of it."""
    return [base, *(one for child in base.__subclasses__() for one in kinds_below(child))]


def test_no_contract_and_no_body_of_a_request_has_its_values_remembered() -> None:
    """Found: pydantic keeps sixteen thousand short strings, and ids filled them for a quarter of an hour."""
    every: list[Any] = [*kinds_below(Part), *kinds_below(Body)]
    assert len(every) > 50
    assert [kind.__name__ for kind in every if kind.model_config.get("cache_strings") != "keys"] == []


def test_few_traces_are_remembered() -> None:
    """Found: every charge's own id was remembered, four thousand of them."""
    _trace_of.cache_clear()
    for number in range(TRACES_MAX + 100):
        traceparent_of(f"c{number}", f"e{number}")
    assert _trace_of.cache_info().currsize == TRACES_MAX
