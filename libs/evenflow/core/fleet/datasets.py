"""Where datasets lie."""

from __future__ import annotations

from collections.abc import Iterable

from evenflow.core.fleet.views import DatasetView


class DatasetsView:
    """All datasets at one moment."""

    def __init__(self, datasets: Iterable[DatasetView] = ()) -> None:
        self._datasets = {dataset.id: dataset for dataset in datasets}

    def get(self, dataset_id: str) -> DatasetView | None:
        """The dataset, or None when nobody described it."""
        return self._datasets.get(dataset_id)


class Datasets:
    """All datasets, as they change."""

    def __init__(self) -> None:
        self._datasets: dict[str, DatasetView] = {}
        self._view: DatasetsView | None = None

    def set(self, dataset: DatasetView) -> None:
        """Take a dataset's newest state."""
        if self._datasets.get(dataset.id) != dataset:
            self._datasets[dataset.id] = dataset
            self._view = None

    def remove(self, dataset_id: str) -> None:
        """Forget a dataset."""
        if self._datasets.pop(dataset_id, None) is not None:
            self._view = None

    def get(self, dataset_id: str) -> DatasetView | None:
        """The dataset, or None when nobody described it."""
        return self._datasets.get(dataset_id)

    def snapshot(self) -> DatasetsView:
        """The datasets of this moment; the same object until one changes."""
        if self._view is None:
            self._view = DatasetsView(self._datasets.values())
        return self._view
