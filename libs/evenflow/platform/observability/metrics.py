"""Counters, gauges and histograms with bounded label sets, over OpenTelemetry's metrics API.

A label's values are bounded because each combination costs memory here and in every system that collects them: beyond
the bound new combinations are counted together as "other". Without a meter nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

SERIES_COUNT_MAX: Final = 200
LABEL_CHARACTERS_MAX: Final = 80
OTHER: Final = "other"

_Record = Callable[[int, dict[str, str]], None]


class Instrument:
    """One number for each combination of its declared labels."""

    __slots__ = ("_labels", "_name", "_record", "_seen")

    def __init__(self, name: str, labels: tuple[str, ...], record: _Record | None) -> None:
        self._name = name
        self._labels = labels
        self._record = record
        self._seen: dict[tuple[str, ...], dict[str, str]] = {}

    def record(self, amount: int, **labels: str) -> None:
        """Add (a counter), set (a gauge) or observe (a histogram); TypeError for labels that were not declared."""
        if labels.keys() != {*self._labels}:
            raise TypeError(f"metric {self._name} takes labels {self._labels}, not {tuple(labels)}")
        if self._record is not None:
            self._record(amount, self._attributes(tuple(labels[name][:LABEL_CHARACTERS_MAX] for name in self._labels)))

    def _attributes(self, values: tuple[str, ...]) -> dict[str, str]:
        if values not in self._seen and len(self._seen) >= SERIES_COUNT_MAX:
            values = (OTHER,) * len(self._labels)
        known = self._seen.get(values)
        if known is None:
            known = self._seen[values] = dict(zip(self._labels, values, strict=True))
        return known


class Metrics:
    """The instruments of one process, one for each name; off without a meter. Units stand last in names."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._meter = meter
        self._instruments: dict[str, Instrument] = {}

    def counter(self, name: str, *labels: str) -> Instrument:
        """Something that only grows."""
        return self._make(name, labels, lambda meter: meter.create_counter(name).add)

    def gauge(self, name: str, *labels: str) -> Instrument:
        """Something that is now so high."""
        return self._make(name, labels, lambda meter: meter.create_gauge(name).set)

    def histogram(self, name: str, *labels: str) -> Instrument:
        """Something measured each time, as a duration."""
        return self._make(name, labels, lambda meter: meter.create_histogram(name).record)

    def _make(self, name: str, labels: tuple[str, ...], create: Callable[[Meter], _Record]) -> Instrument:
        if name in self._instruments:
            raise ValueError(f"metric {name} is made already")
        record = create(self._meter) if self._meter is not None else None
        instrument = self._instruments[name] = Instrument(name, labels, record)
        return instrument
