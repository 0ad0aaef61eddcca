"""`join`: messages of a party flow again; what it did meanwhile arrives then."""

from __future__ import annotations

from typing import Any, Final

from evenflow.sim.stage import Stage
from evenflow.sim.verbs.cut import PARTY, party_of
from evenflow.sim.verbs.verb import Verb


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.network.join(party_of(values))


VERB: Final = Verb("join", "messages of a party flow again", PARTY.kind(), _act)
