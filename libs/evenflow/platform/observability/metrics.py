"""Counters, gauges and histograms with bounded label sets, over OpenTelemetry's metrics API.

A label's values are bounded because each combination costs memory here and in every system that collects them: beyond
the bound new combinations are counted together as "other". Without a meter nothing is recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from evenflow.platform.observability.signals import Signal

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
    """The instruments of one process, one for each signal; off without a meter."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._meter = meter
        self._instruments: dict[Signal, Instrument] = {}

    def of(self, signal: Signal) -> Instrument:
        """The instrument of a signal, the same one each time."""
        made = self._instruments.get(signal)
        if made is None:
            record = None if self._meter is None else _CREATE[signal.kind](self._meter, signal)
            made = self._instruments[signal] = Instrument(signal.name, signal.labels, record)
        return made


_CREATE: Final[dict[str, Callable[[Meter, Signal], _Record]]] = {
    "counter": lambda meter, signal: meter.create_counter(signal.name, description=signal.about).add,
    "gauge": lambda meter, signal: meter.create_gauge(signal.name, description=signal.about).set,
    "histogram": lambda meter, signal: meter.create_histogram(signal.name, description=signal.about).record,
}
