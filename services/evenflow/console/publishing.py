"""Documents through their strict doors: what a person wrote becomes a new version, or is refused by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from evenflow.console.access.caller import Caller
from evenflow.console.problems import Problem, invalid, planned
from evenflow.console.projection.papers import PUBLISHED
from evenflow.console.service import OWN_VIEW_MS, Console
from evenflow.events import streams
from evenflow.events.contracts.console import DatasetAddRequested, DatasetDropRequested, DocumentPublished
from evenflow.events.documents.network import parse_dataset, parse_link, parse_site
from evenflow.events.documents.policy import parse_policy, policy_document
from evenflow.events.documents.queue import parse_queue
from evenflow.events.documents.readiness import planned_in_policy, planned_in_queue, planned_in_site
from evenflow.platform.broker.codec import Fact

KINDS: Final = ("policy", "queue", "site", "link")
POLICY_NAME: Final = "default"

Versions = list[tuple[str, dict[str, Any]]]


class Publishing:
    """Publishes documents and dataset requests."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def put(
        self, kind: str, name: str, document: object, *, who: Caller, reason: str, expect: int | None
    ) -> list[dict[str, Any]]:
        """Publish a document; what was published, by name and version. Raises Problem or FieldRefused."""
        if kind not in DOORS:
            way_out = f"One of {', '.join(KINDS)}; datasets are put under /api/v1/datasets."
            raise Problem(404, "not-found", f"documents of kind {kind[:40]!a} are not put here", way_out=way_out)
        if not isinstance(document, dict):
            raise invalid("", "must be a map of fields")
        if kind == "queue":
            who.keep_to(queue=name)
            if who.tenant and not who.queue:
                raise Problem(
                    403,
                    "out-of-bounds",
                    f"a queue belongs to the pool, and the token of {who.name} is bounded to the tenant {who.tenant}",
                    path="tenant",
                    way_out="Ask an owner for a token that names the queue.",
                )
        papers = self._console.board.papers
        versions = DOORS[kind](name, document)
        if expect is not None and papers.version(f"{kind}/{name}") != expect:
            newest = papers.version(f"{kind}/{name}")
            raise Problem(
                409, "conflict", f"version {newest} is the newest, not {expect}", way_out="Read it and decide again."
            )
        published: list[dict[str, Any]] = []
        for each, body in versions:
            version = papers.version(f"{kind}/{each}") + 1
            fact = DocumentPublished(
                kind=kind,  # type: ignore[arg-type]  # DOORS holds only kinds of documents
                name=each,
                version=version,
                document=body,
                who=who.name,
                reason=reason or who.reason,
            )
            await self._console.publish(
                Fact(streams.POLICIES, fact),
                action=PUBLISHED,
                subject=f"{kind}/{each}",
                parameters={"version": version, "document": body},
                who=who,
                reason=reason,
            )
            published.append({"kind": kind, "name": each, "version": version, "document": body})
        last = published[-1]
        await self._console.seen(lambda: papers.version(f"{kind}/{last['name']}") >= last["version"], OWN_VIEW_MS)
        return published

    async def add_dataset(self, name: str, document: object, *, who: Caller, reason: str) -> None:
        """Ask inventory to register a dataset. Raises Problem or FieldRefused."""
        if not isinstance(document, dict):
            raise invalid("", "must be a map of fields")
        whole = _named(name, document)
        parse_dataset(whole)
        await self._console.publish(
            Fact(streams.REQUESTS, DatasetAddRequested(dataset=name, document=whole)),
            action="dataset.add",
            subject=name,
            parameters={"document": whole},
            who=who,
            reason=reason,
        )
        datasets = self._console.board.fleet.datasets
        await self._console.seen(lambda: name in datasets, OWN_VIEW_MS)

    async def drop_copy(self, name: str, site: str, *, who: Caller, reason: str) -> None:
        """Ask inventory to drop a copy. Raises Problem when there is none."""
        known = self._console.board.fleet.datasets.get(name)
        if known is None or all(copy.site != site for copy in known.copies):
            raise Problem(
                404,
                "not-found",
                f"there is no copy of {name[:80]!a} at {site[:80]!a}",
                way_out="GET /api/v1/datasets lists the copies.",
            )
        await self._console.publish(
            Fact(streams.REQUESTS, DatasetDropRequested(dataset=name, site=site)),
            action="dataset.drop",
            subject=name,
            parameters={"site": site},
            who=who,
            reason=reason,
        )


def _named(name: str, document: dict[str, Any], field: str = "id") -> dict[str, Any]:
    """The document with its name in it. Raises Problem when it carries another."""
    if document.get(field, name) != name:
        raise invalid(field, f"is not {name}, under which the document is put")
    return {field: name, **document}


def _policy(name: str, document: dict[str, Any]) -> Versions:
    whole = _named(name, document, "name")
    if name != POLICY_NAME:
        raise invalid("name", f"only the policy {POLICY_NAME} is in force; others come later")
    policy = parse_policy(whole)
    if paths := planned_in_policy(policy):
        raise planned(paths)
    return [(name, policy_document(policy))]


def _queue(name: str, document: dict[str, Any]) -> Versions:
    whole = _named(name, document)
    if paths := planned_in_queue(parse_queue(whole)):
        raise planned(paths)
    return [(name, whole)]


def _site(name: str, document: dict[str, Any]) -> Versions:
    whole = _named(name, document)
    if paths := planned_in_site(parse_site(whole)):
        raise planned(paths)
    return [(name, whole)]


def _link(name: str, document: dict[str, Any]) -> Versions:
    """A directed link; one that goes both ways becomes two documents."""
    source, dots, target = name.partition("..")
    if not dots or not source or not target:
        raise invalid("", f"a link is put under its ends, as east..west, not {name[:80]!a}")
    whole = _named(target, _named(source, document, "from"), "to")
    link = parse_link(whole)
    one_way = {**whole, "both_ways": False}
    versions = [(name, one_way)]
    if link.both_ways:
        versions.append((f"{target}..{source}", {**one_way, "from": target, "to": source}))
    return versions


DOORS: Final[dict[str, Callable[[str, dict[str, Any]], Versions]]] = {
    "policy": _policy,
    "queue": _queue,
    "site": _site,
    "link": _link,
}
