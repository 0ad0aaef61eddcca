"""The audit from outside finds each thing that it says it would find."""

from __future__ import annotations

import importlib.util
import json
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

_PATH = Path(__file__).resolve().parents[2] / "integration" / "audit.py"


@pytest.fixture(scope="module")
def audit() -> Any:
    found = importlib.util.spec_from_file_location("audit", _PATH)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def charge(number: int, previous: str, balance: int, entry: str, duration_ms: int) -> dict[str, Any]:
    """A ledger line as billing writes it."""
    body = {
        "queue": "default", "number": number, "entry": entry, "duration_ms": duration_ms, "amount_micro": duration_ms,
        "balance_micro": balance,
    }  # fmt: skip
    digest = sha256(f"{previous}\n{json.dumps(body, sort_keys=True, separators=(',', ':'))}".encode()).hexdigest()
    return {**body, "previous": previous, "hash": digest}


def good() -> list[tuple[str, str, str, dict[str, Any]]]:
    """One task, one attempt, one member, two lines."""
    name = {"tenant": "default", "task": "t", "attempt": 1, "member": 0}
    use = {"attempt": 1, "end": "succeeded", "members": [{"place": {"member": 0}, "started": True, "run_ms": 70}]}
    first = charge(1, "0" * 64, 30, "default/t/1/0/start", 30)
    return [
        ("task.submitted", "a", "default/t", {}),
        ("task.assigned", "b", "default/t", {"attempt": 1}),
        ("attempt.accepted", "c", "default/t", {**name, "node": "n1", "generation": 1}),
        ("attempt.reclaimed", "d", "default/t", {**name, "outcome": {"run_ms": 70}}),
        ("task.ended", "e", "default/t", {**name, "use": use}),
        ("charge.recorded", "f", "default", first),
        ("charge.recorded", "g", "default", charge(2, first["hash"], 100, "default/t/1/0/work", 70)),
    ]


def test_a_sound_log_passes_and_a_repeated_record_is_the_same_record(audit: Any) -> None:
    """At least once is allowed; the figures count what was looked at."""
    found = audit.Audit([*good(), good()[1], good()[4]])
    assert list(found.complaints()) == []
    assert found.figures() == {"submitted": 1, "ended": 1, "attempts": 1, "members_started": 1, "ledger_lines": 2}


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda log: log.pop(4), "has 0 ends"),
        (lambda log: log.append(("task.ended", "h", "default/t", {**log[4][3], "use": None})), "has 2 ends"),
        (lambda log: log.append(("task.assigned", "h", "default/t", {"attempt": 1})), "was assigned 2 times"),
        (lambda log: log.append(("attempt.accepted", "h", "k", {**log[2][3], "node": "n2"})), "was accepted at"),
        (lambda log: log.pop(6), "70 ms were accepted, None charged"),
        (lambda log: log.append(log[6]), "was charged 2 times"),
        (lambda log: log[3][3]["outcome"].update(run_ms=71), "its agent said 71 ms, 70 were accepted"),
        (lambda log: log[6][3].update(amount_micro=71), "the chain of queue default is broken"),
    ],
)
def test_each_harm_is_found(audit: Any, harm: Any, words: str) -> None:
    """An audit that can't fail would prove nothing."""
    log = deepcopy(good())
    harm(log)
    assert any(words in complaint for complaint in audit.Audit(log).complaints())
