"""Metrics: declared labels only, bounded series, nothing without a meter."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from evenflow.platform.observability import metrics, signals
from evenflow.platform.observability.signals import Signal


def _collected(reader: InMemoryMetricReader) -> dict[str, dict[tuple[object, ...], object]]:
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, dict[tuple[object, ...], object]] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.data.data_points:
            value = getattr(point, "value", None)
            key = tuple((point.attributes or {}).values())
            found.setdefault(metric.name, {})[key] = getattr(point, "sum", None) if value is None else value
    return found


def test_counts_levels_and_spreads_are_kept_by_label() -> None:
    """A counter adds, a gauge sets, a histogram sums."""
    reader = InMemoryMetricReader()
    made = metrics.Metrics(MeterProvider([reader], shutdown_on_exit=False).get_meter("evenflow"))
    count = made.of(Signal("counter", "placed_count", ("pool",), "placed"))
    level = made.of(Signal("gauge", "waiting_count", (), "waiting"))
    spread = made.of(Signal("histogram", "round_ms", (), "a round"))
    count.record(2, pool="p")
    count.record(3, pool="p")
    count.record(1, pool="q")
    level.record(7)
    level.record(4)
    spread.record(10)
    spread.record(20)
    assert _collected(reader) == {
        "placed_count": {("p",): 5, ("q",): 1},
        "waiting_count": {(): 4},
        "round_ms": {(): 30},
    }


def test_beyond_the_bound_new_label_values_count_as_other() -> None:
    """A task's name as a label can't fill the memory; the sum stays right."""
    reader = InMemoryMetricReader()
    made = metrics.Metrics(MeterProvider([reader], shutdown_on_exit=False).get_meter("evenflow"))
    count = made.of(Signal("counter", "n", ("task",), "n"))
    for number in range(metrics.SERIES_COUNT_MAX + 50):
        count.record(1, task=f"t{number}" + "x" * 200)
    count.record(1, task="t0" + "x" * 200)
    series = _collected(reader)["n"]
    assert len(series) == metrics.SERIES_COUNT_MAX + 1
    assert series["other",] == 50
    assert series["t0" + "x" * 78,] == 2


@pytest.mark.parametrize("labels", [{}, {"task": "t"}, {"pool": "p", "task": "t"}])
def test_undeclared_labels_are_a_mistake_even_when_off(labels: dict[str, str]) -> None:
    """So that the mistake shows in a test and not when metrics are switched on."""
    count = metrics.Metrics().of(Signal("counter", "n", ("pool",), "n"))
    with pytest.raises(TypeError, match="takes labels"):
        count.record(1, **labels)
    count.record(1, pool="p")


def test_a_signal_has_one_instrument_and_a_name_one_signal() -> None:
    """Two instruments of one name would hide each other's labels."""
    made = metrics.Metrics()
    assert made.of(signals.ROUNDS) is made.of(signals.ROUNDS)
    names = [signal.name for signal in signals.SIGNALS]
    assert len(names) == len(set(names)) > 10
    assert all(signal.name.startswith("evenflow_") and signal.about for signal in signals.SIGNALS)
