"""`{ledger: {…}}`, `{estimate: {…}}`, `{alert, subject}`: money and alerts."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.event_types import EntryKind
from evenflow.core.units import money_text
from evenflow.sim.expectations.form import AT, BY, Answer, Expect, one_moment
from evenflow.sim.observation.model import Observation, Row
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading, Values

_FIGURES: Final = ("rows", "seconds", "device_seconds", "bytes", "amount")
_READ: Final[dict[str, Kind]] = {
    "rows": kinds.COUNT,
    "seconds": kinds.SECONDS,
    "device_seconds": kinds.SECONDS,
    "bytes": kinds.SIZE,
    "amount": kinds.MONEY,
}
#: milli-devices × milliseconds in one device-millisecond.
_MILLI_DEVICES: Final = 1_000


def _read_tolerance(value: object, path: str, reading: Reading) -> dict[str, int]:
    """A map by figure, or one bare number for every figure of the line."""
    if isinstance(value, Mapping):
        form = Form("tolerance", "by figure", tuple(Field(name, _READ[name], "may differ by") for name in _FIGURES))
        return form.read(value, path, reading, given_only=True)
    return {name: _READ[name].read(value, path, reading) for name in ("seconds", "device_seconds", "amount")} | {
        name: int(float(str(value))) for name in ("rows", "bytes")
    }


_TOLERANCE: Final = Kind("number, or map by figure", _read_tolerance)
_LINE: Final = Form(
    "ledger line",
    "which entries, and what they come to",
    (
        Field("task", kinds.PATTERN, "of these tasks", default="*"),
        Field("attempt", kinds.COUNT, "of this attempt"),
        Field("member", kinds.COUNT, "of this member"),
        Field("queue", kinds.PATTERN, "of these queues", default="*"),
        Field("kind", kinds.choice(*(str(kind) for kind in EntryKind)), "of this kind"),
        Field("rows", kinds.COUNT, "number of entries"),
        Field("seconds", kinds.SECONDS, "time of the entries, all kinds unless said"),
        Field("device_seconds", kinds.SECONDS, "device time; of kind work unless said"),
        Field("bytes", kinds.SIZE, "bytes; of kind transfer unless said"),
        Field("amount", kinds.MONEY, "money"),
        Field("tolerance", _TOLERANCE, "how far each figure may be off", default={}),
    ),
)


def _selected(values: Values, model: Observation, t_ms: int) -> list[Row]:
    return [
        row
        for row in model.ledger
        if row["t"] * 1000 <= t_ms + 0.5
        and fnmatchcase(row["task_shown"], values["task"])
        and fnmatchcase(str(row.get("queue", "")), values["queue"])
        and values["attempt"] in (None, row.get("attempt"))
        and values["member"] in (None, row.get("member"))
        and values["kind"] in (None, row.get("kind"))
    ]


def figures(rows: list[Row], kind: str | None) -> dict[str, int]:
    """What the rows come to; time in milliseconds, device time in device-milliseconds, money in micro-units."""
    work = [row for row in rows if row.get("kind") == (kind or "work")]
    moved = [row for row in rows if row.get("kind") == (kind or "transfer")]
    return {
        "rows": len(rows),
        "seconds": sum(row.get("duration_ms", 0) for row in rows),
        "device_seconds": sum(row.get("device_milli_ms", 0) for row in work) // _MILLI_DEVICES,
        "bytes": sum(row.get("bytes", 0) for row in moved),
        "amount": sum(row.get("amount_micro", 0) for row in rows),
    }


def _ledger(values: Values, model: Observation, t_ms: int) -> Answer:
    line = values["ledger"]
    found = figures(_selected(line, model, t_ms), line["kind"])
    wanted = {name: line[name] for name in _FIGURES if line[name] is not None}
    holds = all(abs(found[name] - value) <= line["tolerance"].get(name, 0) for name, value in wanted.items())
    return Answer(holds, {name: _shown(name, found[name]) for name in wanted})


def _shown(name: str, value: int) -> Any:
    if name == "amount":
        return f"-{money_text(-value)}" if value < 0 else money_text(value)
    return value / 1000 if name in ("seconds", "device_seconds") else value


LEDGER: Final = Expect(
    "ledger",
    "what entries of the ledger come to",
    (("ledger",),),
    Form(
        "ledger expectation", "entries at a moment", (AT, Field("ledger", _LINE.kind(), "the entries", required=True))
    ),
    _ledger,
)

_ESTIMATE: Final = Form(
    "estimate",
    "the price said before the start",
    (
        Field("task", kinds.TEXT, "id of the task", required=True),
        Field("attempt", kinds.COUNT, "of this attempt; the first unless said"),
        Field("amount", kinds.MONEY, "money", required=True),
        Field("tolerance", kinds.MONEY, "how far it may be off", default=0),
    ),
)


def _estimate(values: Values, model: Observation, t_ms: int) -> Answer:
    line = values["estimate"]
    task = model.named(line["task"])
    begun = [] if task is None else [attempt for attempt in task.attempts.values() if attempt.assigned_ms <= t_ms]
    chosen = [attempt for attempt in begun if line["attempt"] in (None, attempt.number)]
    if not chosen:
        return Answer(holds=False, got="no such attempt")
    found = chosen[0].estimate_micro
    return Answer(abs(found - line["amount"]) <= line["tolerance"], money_text(found))


ESTIMATE: Final = Expect(
    "estimate",
    "the price said before the start",
    (("estimate",),),
    Form(
        "estimate expectation",
        "a task's estimate",
        (AT, Field("estimate", _ESTIMATE.kind(), "the line", required=True)),
    ),
    _estimate,
)


def _alert_at(values: Values, model: Observation, t_ms: int) -> Answer:
    found = {
        f"{name}/{subject}": past.at(t_ms)
        for (name, subject), past in model.alerts.items()
        if name == values["alert"] and fnmatchcase(subject, values["subject"])
    }
    return Answer(values["is"] in found.values(), found or "never raised")


def _alert_by(values: Values, model: Observation, t_ms: int) -> Answer:
    holds = any(
        state == values["is"]
        for (name, subject), past in model.alerts.items()
        if name == values["alert"] and fnmatchcase(subject, values["subject"])
        for _, state in past.until(t_ms)
    )
    return Answer(holds, _alert_at(values, model, t_ms).got)


ALERT: Final = Expect(
    "alert",
    "an alert about a subject",
    (("alert",),),
    Form(
        "alert expectation",
        "an alert at a moment",
        (
            AT,
            BY,
            Field("alert", kinds.choice(*(str(alert) for alert in Alert)), "its name", required=True),
            Field("subject", kinds.TEXT, "its subject; a pattern is possible", default="*"),
            Field("is", kinds.choice("raised", "acknowledged", "cleared"), "its state", default="raised"),
        ),
        check=one_moment,
    ),
    _alert_at,
    _alert_by,
)
