"""`cut`: messages of a party stop."""

from __future__ import annotations

from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Values
from evenflow.sim.stage import Party, Stage
from evenflow.sim.verbs.verb import Verb


def _check(values: Values, path: str) -> None:
    if "link" in values and len(values["link"]) != 2:
        raise FieldRefused(f"{path}.link", "must be [from, to]")


PARTY: Final = Form(
    "party",
    "who is cut off: control messages of a node, everything of a site, probes and transfers of a link",
    (
        Field("node", kinds.ID, "a node's control messages"),
        Field("site", kinds.ID, "all messages, transfers and store access of a site"),
        Field("link", kinds.list_of(kinds.ID), "[from, to]: probes and transfers"),
    ),
    one_of=("node", "site", "link"),
    check=_check,
)


def party_of(values: dict[str, Any]) -> Party:
    """The party that a form names."""
    if values["node"] is not None:
        return "node", values["node"], ""
    if values["site"] is not None:
        return "site", values["site"], ""
    return "link", values["link"][0], values["link"][1]


async def _act(stage: Stage, values: dict[str, Any]) -> None:
    await stage.network.cut(party_of(values))


VERB: Final = Verb("cut", "messages of a party stop", PARTY.kind(), _act)
