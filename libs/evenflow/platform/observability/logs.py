"""JSON logs: one line for each unit of work, stamped by the injected clock.

Nothing is configured globally: each process incarnation has its own logger and its own way out, so a thousand
simulated worlds share nothing. Order of a line's keys: time, level, event, service, instance, trace ids, then the
fields as given.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final, Literal

import structlog

from evenflow.core.errors import EvenflowError
from evenflow.platform.clock import Clock
from evenflow.platform.observability.redaction import redact, redact_text
from evenflow.platform.observability.trace import current_trace

Write = Callable[[str], None]
Level = Literal["debug", "info", "warning", "error", "critical"]

LEVELS: Final[dict[str, int]] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_FIRST: Final = ("service", "instance")


class _Out:
    """What structlog wraps: every level's method writes one finished line."""

    def __init__(self, write: Write) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = self.exception = self.msg = write


def stderr_line(line: str) -> None:
    """The usual way out."""
    sys.stderr.write(f"{line}\n")


def make_log(*, service: str, instance: str, clock: Clock, level: Level = "info", write: Write = stderr_line) -> Any:
    """A bound logger of one process. Secrets are hidden, values bounded, exceptions named in the line."""

    def render(_logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        error = event.pop("exc_info", None)
        line: dict[str, Any] = {"time_ms": clock.now_ms(), "level": event.pop("level", method), "event": ""}
        line["event"] = redact_text(str(event.pop("event", "")))
        for name in _FIRST:
            line[name] = event.pop(name, "")
        trace = current_trace()
        if trace is not None and trace.trace_flags.sampled:  # an id that can be looked up, or none
            line["trace_id"], line["span_id"] = f"{trace.trace_id:032x}", f"{trace.span_id:016x}"
        line.update(redact(event))
        if error:
            line.update(error_fields(error if isinstance(error, BaseException) else sys.exc_info()[1]))
        return json.dumps(line, ensure_ascii=True, separators=(",", ":"), default=str)

    return structlog.wrap_logger(
        _Out(write),
        processors=[render],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        context_class=dict,
        cache_logger_on_first_use=False,
    ).bind(service=service, instance=instance)


def error_fields(error: BaseException | None) -> dict[str, Any]:
    """An error as fields: its type and message, and code, retriable and fields of our own tree."""
    if error is None:
        return {}
    fields: dict[str, Any] = {"error": type(error).__name__, "message": redact_text(str(error))}
    if isinstance(error, EvenflowError):
        fields.update(code=error.code, retriable=error.retriable, error_fields=redact(error.fields))
    return fields


@contextmanager
def unit_of_work(log: Any, clock: Clock, event: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """One line at the end, with `duration_ms` and `outcome` (done, or the error's code); add fields on the way.

    An error passes through. It is a warning when it is of our own tree, an error otherwise.
    """
    start_ms = clock.monotonic_ms()
    try:
        yield fields
    except EvenflowError as error:
        duration_ms = clock.monotonic_ms() - start_ms
        log.warning(event, **fields, outcome=error.code, duration_ms=duration_ms, **error_fields(error))
        raise
    except Exception as error:
        duration_ms = clock.monotonic_ms() - start_ms
        log.error(event, **fields, outcome="error", duration_ms=duration_ms, **error_fields(error))
        raise
    log.info(event, **fields, outcome="done", duration_ms=clock.monotonic_ms() - start_ms)
