"""The documents that a file describes, as they are published at t = 0, and checked by the product's own doors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenflow.core.errors import FieldRefused
from evenflow.events.documents.network import parse_dataset, parse_link, parse_site
from evenflow.events.documents.node import parse_node
from evenflow.events.documents.policy import parse_policy
from evenflow.events.documents.queue import parse_queue
from evenflow.sim.scenario.policy import SAME_NUMBER
from evenflow.sim.scenario.schema import Values

Document = dict[str, Any]

BANDWIDTH_UNLESS_SAID = "10Gbit/s"


@dataclass(frozen=True, slots=True)
class Written:
    """Documents by kind, as their doors take them. Links are directed; `policy` holds what differs from the default."""

    policy: Document = field(default_factory=dict)
    sites: list[Document] = field(default_factory=list)
    links: list[Document] = field(default_factory=list)
    nodes: list[Document] = field(default_factory=list)
    queues: list[Document] = field(default_factory=list)
    datasets: list[Document] = field(default_factory=list)


def documents_of(written: Mapping[str, Any], values: Values) -> Written:
    """The documents of a file. Raises FieldRefused with the file's path when a door would refuse one."""
    made = Written(
        policy=_policy(written),
        sites=_sites(written, values),
        links=[link for entry in written.get("links", []) for link in _directed(entry)],
        nodes=_nodes(written, values),
        queues=[dict(entry) for entry in written.get("queues", [])],
        datasets=[dict(entry) for entry in written.get("datasets", [])],
    )
    _check("sites", made.sites, parse_site)
    _check("links", made.links, parse_link)
    _check("nodes", made.nodes, parse_node)
    _check("queues", made.queues, parse_queue)
    _check("datasets", made.datasets, parse_dataset)
    try:
        parse_policy(made.policy)
    except FieldRefused as refusal:
        raise FieldRefused(f"policy.{refusal.path}", refusal.problem) from None
    return made


def _check(kind: str, documents: list[Document], door: Callable[[object], object]) -> None:
    for place, document in enumerate(documents):
        try:
            door(document)
        except FieldRefused as refusal:
            path = f"{kind}[{place}].{refusal.path}" if refusal.path else f"{kind}[{place}]"
            raise FieldRefused(path, refusal.problem) from None


def _policy(written: Mapping[str, Any]) -> Document:
    """The file's policy; a number written as a setting overrides the default policy."""
    policy: Document = {name: entry for name, entry in written.get("policy", {}).items() if name != "name"}
    for setting, (section, key) in SAME_NUMBER.items():
        value = written.get("settings", {}).get(setting)
        if value is not None:
            policy[section] = {**policy.get(section, {}), key: value}
    return policy


def _sites(written: Mapping[str, Any], values: Values) -> list[Document]:
    """The file's sites, and those that its nodes name without a list of sites."""
    given = [dict(entry) for entry in written.get("sites", [])]
    if given:
        return given
    return [{"id": name} for name in dict.fromkeys(node["site"] for node in values["nodes"])]


def _directed(entry: Mapping[str, Any]) -> list[Document]:
    """One document per direction."""
    there: Document = {"bandwidth": BANDWIDTH_UNLESS_SAID, **entry, "both_ways": False}
    if entry.get("both_ways", True):
        return [there, {**there, "from": entry["to"], "to": entry["from"]}]
    return [there]


def _nodes(written: Mapping[str, Any], values: Values) -> list[Document]:
    made: list[Document] = []
    for entry, parsed in zip(written.get("nodes", []), values["nodes"], strict=True):
        for number in range(1, parsed["copies"] + 1):
            document = {name: value for name, value in entry.items() if name != "copies"}
            document["site"] = parsed["site"]
            for name in ("id", "rack"):
                if name in document:
                    document[name] = document[name].replace("{i}", str(number))
            made.append(document)
    return made
