"""Alerts, dashboards, Prometheus' and the collector's configuration: only what is told, and well formed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evenflow.hosting.registry import SERVICES
from evenflow.platform.observability.signals import SIGNALS, Signal

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
#: Told by the client library of every process and by Prometheus itself, each with the labels of the one who asked.
OTHERS = {"up": set(), "process_resident_memory_bytes": set(), "process_cpu_seconds_total": set()}
OF_PROMETHEUS = {"job", "instance"}
WORDS = {
    *("sum", "max", "min", "count", "rate", "increase", "histogram_quantile", "vector", "label_replace"),
    *("by", "on", "or", "and", "unless", "without", "ignoring"),
}
UNITS = {"_ms": "ms", "_seconds": "s"}


def told(signal: Signal) -> list[str]:
    """A figure's names as Prometheus knows them."""
    if signal.kind == "histogram":
        return [f"{signal.name}_{part}" for part in ("bucket", "sum", "count")]
    return [f"{signal.name}_total"] if signal.kind == "counter" else [signal.name]


KNOWN = {name: {*one.labels, *(("le",) if name.endswith("_bucket") else ())} for one in SIGNALS for name in told(one)}
KNOWN |= OTHERS


def names_of(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|without|ignoring)\s*\([^)]*\)", "", bare)
    return {word for word in re.findall(r"\b[a-zA-Z_:][a-zA-Z0-9_:]*\b", bare) if word not in WORDS}


def labels_of(expression: str) -> set[str]:
    """The labels that an expression names."""
    groups = re.findall(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)", expression)
    inside = re.findall(r"([a-z_]+)\s*(?:=~|!~|!=|=)\s*\"", " ".join(re.findall(r"\{([^}]*)\}", expression)))
    return {name.strip() for group in groups for name in group.split(",")} | set(inside)


def problems(expression: str) -> list[str]:
    """What an expression asks for and nobody tells."""
    names = names_of(expression)
    unknown = [name for name in sorted(names) if name not in KNOWN]
    if unknown or not names:
        return unknown or ["names no metric"]
    allowed = set.intersection(*(KNOWN[name] for name in names)) | OF_PROMETHEUS
    return sorted(labels_of(expression) - allowed)


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))["groups"]:
        yield from group["rules"]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("max by (pool) (evenflow_waiting_tasks) > 3", []),
        ("max by (pool) (evenflow_waiting_task) > 3", ["evenflow_waiting_task"]),
        ("max by (queue) (evenflow_waiting_tasks) > 3", ["queue"]),
        ('sum(rate(evenflow_steps_total{state="failed"}[5m]))', ["state"]),
        ("rate(evenflow_steps[5m])", ["evenflow_steps"]),
        ("histogram_quantile(0.9, sum by (pool, le) (rate(evenflow_round_commit_ms_bucket[5m])))", []),
        ("1 > 2", ["names no metric"]),
    ],
)
def test_what_nobody_tells_is_found(expression: str, found: list[str]) -> None:
    """Proves that a wrong name and a wrong label are both noticed."""
    assert problems(expression) == found


def test_every_alert_asks_for_what_is_told() -> None:
    """Proves that no rule waits for a figure or a label that does not exist; its text names its labels only."""
    for rule in rules():
        assert problems(rule["expr"]) == [], rule["alert"]
        shown = set(re.findall(r"\$labels\.([a-z_]+)", rule["annotations"]["summary"]))
        grouped = labels_of(rule["expr"]) or OF_PROMETHEUS
        assert shown <= grouped, rule["alert"]


def test_the_page_names_every_alert() -> None:
    """Proves that whoever is called finds what to do."""
    page = (DEPLOY.parent / "docs" / "observability.md").read_text(encoding="utf-8")
    assert [rule["alert"] for rule in rules() if f"| {rule['alert']} |" not in page] == []


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_asks_for_what_is_told(path: Path) -> None:
    """Proves it for each query of each panel, and that what its legend names is a label of the answer."""
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
        for target in panel["targets"]:
            assert problems(target["expr"]) == [], panel["title"]
            grouped = labels_of(target["expr"]) if " by (" in target["expr"] else OF_PROMETHEUS
            assert set(re.findall(r"\{\{([a-z_]+)\}\}", target["legendFormat"])) <= grouped, panel["title"]


def test_dashboards_are_well_formed() -> None:
    """Proves unique ids, a title, a text and a unit for each panel that suits what it shows, and no overlap."""
    boards = [json.loads(path.read_text(encoding="utf-8")) for path in DASHBOARDS]
    assert len({board["uid"] for board in boards}) == len(boards) == 2
    sources = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/prometheus.yaml").read_text(encoding="utf-8"))
    known = {source["uid"] for source in sources["datasources"]}
    for board in boards:
        panels = board["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            assert panel["title"]
            assert panel["description"].endswith(".")
            assert {panel["datasource"]["uid"], *(each["datasource"]["uid"] for each in panel["targets"])} <= known
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken
            assert max(x for x, _ in cells) < 24
            taken |= cells
            unit = panel["fieldConfig"]["defaults"]["unit"]
            for target in panel["targets"]:
                rated = "rate(" in target["expr"] and "histogram_quantile" not in target["expr"]
                wanted = next(
                    (unit for end, unit in UNITS.items() if f"{end}" in "".join(names_of(target["expr"]))), ""
                )
                assert not wanted or rated or unit == wanted, panel["title"]
                assert not rated or unit in ("ops", "percentunit"), panel["title"]


def test_what_is_asked_for_is_shown() -> None:
    """Proves that rounds, waits, links, ledger, lag and dead letters are on a dashboard, and nearly every figure is."""
    shown = {
        name
        for path in DASHBOARDS
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        for target in panel["targets"]
        for name in names_of(target["expr"])
    }
    assert [one.name for one in SIGNALS if not shown & set(told(one))] == []


def test_prometheus_asks_every_service_at_its_operations_door() -> None:
    """Proves that the ports are those of the registry, and that every copy of a service is asked."""
    asked = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"]
    doors = {
        each["job_name"]: (one["names"], one["type"], one["port"]) for each in asked for one in each["dns_sd_configs"]
    }
    assert doors.pop("otel") == (["otel"], "A", 8889)
    assert doors == {kind.name: ([kind.name], "A", kind.operations_port) for kind in SERVICES.values()}


def test_the_collector_s_pipelines_are_made_of_its_parts_and_bounded() -> None:
    """Proves that nothing is named that is not there, that memory is limited first, and that it listens on loopback."""
    told_of = yaml.safe_load((DEPLOY / "otel" / "collector.yaml").read_text(encoding="utf-8"))
    for pipeline in told_of["service"]["pipelines"].values():
        for kind in ("receivers", "processors", "exporters"):
            parts = [re.sub(r"\$\{env:[A-Z_]+:-(.*)\}", r"\1", part) for part in pipeline[kind]]
            assert set(parts) <= set(told_of[kind])
        assert pipeline["processors"][0] == "memory_limiter"
    text = (DEPLOY / "otel" / "collector.yaml").read_text(encoding="utf-8")
    assert re.findall(r"endpoint: \"(?!\$\{env:OTEL_)", text) == []
    assert set(re.findall(r"OTEL_ADDRESS:-([0-9.]+)", text)) == {"127.0.0.1"}
