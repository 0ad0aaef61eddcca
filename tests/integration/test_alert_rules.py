"""Prometheus' configuration and alert rules by promtool, built from source."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from evenflow.core.errors import Refused
from evenflow.testkit.alerts import FOLDER, check_alerts, promtool

pytestmark = pytest.mark.servers


@pytest.fixture(name="program", scope="module")
def _program(pytestconfig: pytest.Config) -> Path:
    return promtool(pytestconfig.rootpath, lambda _: None)


def test_configuration_rules_and_their_tests_are_right(pytestconfig: pytest.Config, program: Path) -> None:
    """Proves that Prometheus takes the files and that each rule fires and keeps quiet as its tests say."""
    check_alerts(program, pytestconfig.rootpath / FOLDER)


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("alerts.yml", "evenflow_lag_seconds) > 60", "evenflow_lag_seconds) > 600"),
        ("alerts.yml", "sum by (pool) (evenflow_leading) > 1", "sum by (pool) (evenflow_leading) > 2"),
        ("alerts.yml", "expr: max(evenflow_ledger_broken_queues)", "expr: max(evenflow_ledger_broken_queues"),
        ("alerts.yml", "        for: 30s", "        lasts: 30s"),
        ("prometheus.yml", "scrape_interval: 15s", "scrape_interval: often"),
        ("prometheus.yml", "rule_files: [alerts.yml]", "rule_files: [absent.yml]"),
    ],
)
def test_a_wrong_file_is_refused(
    pytestconfig: pytest.Config, program: Path, tmp_path: Path, file: str, old: str, new: str
) -> None:
    """Proves that the check above can fail: another limit, bad syntax, unknown keys, absent files."""
    folder = tmp_path / "prometheus"
    shutil.copytree(pytestconfig.rootpath / FOLDER, folder)
    text = (folder / file).read_text(encoding="utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Refused):
        check_alerts(program, folder)


def test_every_rule_is_tested_quiet_and_firing(pytestconfig: pytest.Config) -> None:
    """Proves that no rule is without a case in which it fires and one in which it does not."""
    folder = pytestconfig.rootpath / FOLDER
    rules = yaml.safe_load((folder / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    tests = yaml.safe_load((folder / "alerts.test.yml").read_text(encoding="utf-8"))["tests"]
    cases = {(one["alertname"], bool(one["exp_alerts"])) for test in tests for one in test["alert_rule_test"]}
    names = {rule["alert"] for group in rules for rule in group["rules"]}
    assert cases == {(name, fires) for name in names for fires in (False, True)}
