"""One JSON line for each unit of work, stamped by the injected clock."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from evenflow.core.errors import Unavailable
from evenflow.platform.observability import logs
from evenflow.platform.observability.trace import Tracing


class Clock:
    """A clock that a test sets."""

    now = 1_000

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        return self.now - 900

    async def sleep(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


def _fail(error: Exception, clock: Clock | None = None) -> None:
    if clock is not None:
        clock.now += 5
    raise error


def _log(lines: list[str], clock: Clock, level: logs.Level = "info") -> Any:
    return logs.make_log(service="placement", instance="p-1", clock=clock, level=level, write=lines.append)


def test_a_line_is_json_in_a_fixed_order_with_the_clocks_time() -> None:
    """Equal input gives equal bytes, so simulated logs can be compared."""
    lines: list[str] = []
    _log(lines, Clock()).bind(task="t1").info("round done", placed_count=3, password="hunter2")
    (line,) = lines
    assert line == (
        '{"time_ms":1000,"level":"info","event":"round done","service":"placement","instance":"p-1",'
        '"task":"t1","placed_count":3,"password":"[hidden]"}'
    )


def test_a_line_break_in_a_value_makes_no_second_line() -> None:
    """Nobody can forge a line through a task's name; nor do odd characters break a terminal."""
    lines: list[str] = []
    _log(lines, Clock()).info("a\nb\x1b[2J", task='x"}\n{"level":"error"\u2028')
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert lines[0].isascii()
    assert json.loads(lines[0])["event"] == "a\nb\x1b[2J"


def test_lines_below_the_level_are_not_made() -> None:
    """Nor are their fields touched."""
    lines: list[str] = []
    log = _log(lines, Clock(), "warning")
    log.info("quiet")
    log.warning("loud")
    log.error("louder")
    assert [json.loads(line)["level"] for line in lines] == ["warning", "error"]


def test_an_error_stands_on_its_line_with_code_and_retriable() -> None:
    """exception() inside an except block, or exc_info=error anywhere."""
    lines: list[str] = []
    log = _log(lines, Clock())
    try:
        _fail(Unavailable("no answer from redis://:hunter2@h", store="live", token="hunter2"))
    except Unavailable as error:
        log.exception("flush failed")
        log.error("again", exc_info=error)
    for line in map(json.loads, lines):
        assert line["level"] == "error"
        assert (line["error"], line["code"], line["retriable"]) == ("Unavailable", "unavailable", True)
        assert line["error_fields"] == {"store": "live", "token": "[hidden]"}
        assert "hunter2" not in json.dumps(line)


def test_a_unit_of_work_is_one_line_with_duration_and_what_was_added() -> None:
    """Fields may be added on the way."""
    lines: list[str] = []
    clock = Clock()
    with logs.unit_of_work(_log(lines, clock), clock, "round", pool="p") as fields:
        clock.now += 25
        fields["placed_count"] = 2
    line = json.loads(lines[0])
    assert (line["outcome"], line["duration_ms"], line["pool"], line["placed_count"]) == ("done", 25, "p", 2)


@pytest.mark.parametrize(
    ("error", "level", "outcome"), [(Unavailable("away"), "warning", "unavailable"), (KeyError("x"), "error", "error")]
)
def test_a_failed_unit_of_work_is_one_line_and_passes_the_error_on(error: Exception, level: str, outcome: str) -> None:
    """Errors of our own tree are expected; others are mistakes."""
    lines: list[str] = []
    clock = Clock()
    with pytest.raises(type(error)), logs.unit_of_work(_log(lines, clock), clock, "round"):
        _fail(error, clock)
    line = json.loads(lines[0])
    assert (line["level"], line["outcome"], line["duration_ms"]) == (level, outcome, 5)


def test_a_line_inside_a_trace_carries_its_ids() -> None:
    """And none outside."""
    lines: list[str] = []
    log, tracing = _log(lines, Clock()), Tracing("x", random=random.Random(1), clock=Clock())
    with tracing.span("s", parent="00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"):
        log.info("inside")
    log.info("outside")
    assert json.loads(lines[0])["trace_id"] == "ab" * 16
    assert json.loads(lines[0])["span_id"] == "cd" * 8
    assert "trace_id" not in json.loads(lines[1])


def test_the_usual_way_out_is_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to commands."""
    logs.make_log(service="s", instance="i", clock=Clock()).info("hello")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["event"] == "hello"


def test_no_error_has_no_fields() -> None:
    """exception() outside an except block logs the line alone."""
    assert logs.error_fields(None) == {}
