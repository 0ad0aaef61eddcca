"""The dataset catalogue: which sites hold which dataset, from operators' requests and agents' counted transfers."""

from __future__ import annotations

from evenflow.core.errors import FieldRefused
from evenflow.events import streams
from evenflow.events.contracts.agent import TransferFailed, TransferFinished
from evenflow.events.contracts.console import DatasetAddRequested, DatasetDropRequested
from evenflow.events.contracts.inventory import DatasetChanged, DatasetCopy
from evenflow.events.documents.network import parse_dataset
from evenflow.inventory.registry import Registry
from evenflow.platform.broker.codec import Fact, Received


class Catalogue:
    """Changes of datasets. Adding a copy that is there, or dropping one that is not, changes nothing."""

    def __init__(self, registry: Registry) -> None:
        self._datasets = registry.datasets

    def add(self, body: DatasetAddRequested, cause: Received) -> list[Fact]:
        """Register a dataset, or further copies of a known one of the same size."""
        wanted = parse_dataset(body.document)
        known = self._datasets.get(wanted.id)
        if known is not None and known.size_bytes != wanted.size_bytes:
            raise FieldRefused("size", f"is {wanted.size_bytes} but {wanted.id} has {known.size_bytes} bytes")
        copies = {copy.site: copy for copy in (known.copies if known is not None else ())}
        for copy in wanted.copies:
            copies[copy.site] = DatasetCopy(site=copy.site, authoritative=copy.authoritative)
        residency = wanted.residency or (known.residency if known is not None else ())
        return self._put(wanted.id, wanted.size_bytes, residency, copies, cause)

    def drop(self, body: DatasetDropRequested, cause: Received) -> list[Fact]:
        """A copy is gone."""
        return self._without(body.dataset, body.site, cause)

    def finished(self, body: TransferFinished, cause: Received) -> list[Fact]:
        """A kept copy arrived whole."""
        known = self._datasets.get(body.dataset)
        if known is None or not body.keep_copy or body.counted_bytes < known.size_bytes:
            return []
        copies = {copy.site: copy for copy in known.copies}
        copies.setdefault(body.to_site, DatasetCopy(site=body.to_site))
        return self._put(known.dataset, known.size_bytes, known.residency, copies, cause)

    def failed(self, body: TransferFailed, cause: Received) -> list[Fact]:
        """The source said that it has no such copy."""
        return self._without(body.dataset, body.from_site, cause) if body.missing else []

    def _without(self, dataset: str, site: str, cause: Received) -> list[Fact]:
        known = self._datasets.get(dataset)
        if known is None:
            return []
        copies = {copy.site: copy for copy in known.copies if copy.site != site}
        return self._put(dataset, known.size_bytes, known.residency, copies, cause)

    def _put(
        self, dataset: str, size_bytes: int, residency: tuple[str, ...], copies: dict[str, DatasetCopy], cause: Received
    ) -> list[Fact]:
        known = self._datasets.get(dataset)
        ordered = tuple(copies[site] for site in sorted(copies))
        if known is not None and known.copies == ordered and known.residency == tuple(residency):
            return []
        changed = DatasetChanged(
            dataset=dataset,
            revision=known.revision + 1 if known is not None else 1,
            size_bytes=size_bytes,
            residency=residency,
            copies=ordered,
        )
        self._datasets[dataset] = changed
        return [Fact(streams.DATASETS, changed, cause=cause)]
