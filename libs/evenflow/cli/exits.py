"""Exit codes of the command line, and how an error becomes one.

  0  done
  1  it failed: a task was rejected, a check found something, a scenario does not hold
  2  wrong input: an option, a file, a field
  3  planned: what was asked for is not built yet, or this installation does not carry it
  4  the server can't be reached, or is not ready
  5  there is no such thing
130  interrupted
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final, NoReturn

from evenflow.core.errors import EvenflowError, FieldRefused, Refused

DONE: Final = 0
FAILED: Final = 1
WRONG: Final = 2
PLANNED: Final = 3
UNREACHABLE: Final = 4
ABSENT: Final = 5
INTERRUPTED: Final = 130


class Stop(EvenflowError):
    """The command ends with this code; the message is for standard error."""

    def __init__(self, exit_code: int, problem: str, *, way_out: str = "", path: str = "", code: str = "") -> None:
        super().__init__(problem)
        self.exit_code = exit_code
        self.problem = problem
        self.way_out = way_out
        self.path = path
        self.code = code or _NAMES.get(exit_code, "error")


_NAMES: Final = {
    FAILED: "failed",
    WRONG: "invalid",
    PLANNED: "planned",
    UNREACHABLE: "unreachable",
    ABSENT: "not-found",
}


def unavailable(what: str) -> Stop:
    """A feature that this installation does not carry."""
    return Stop(PLANNED, f"{what} is not part of this installation", way_out="Install the whole distribution.")


def explained(error: EvenflowError) -> Stop:
    """Any error of the product as an end of the command."""
    if isinstance(error, Stop):
        return error
    answered = getattr(error, "status", None)
    if answered is not None:
        return _answered(error, int(answered))
    if error.code == "unreachable":
        way_out = "Start a server with `evenflow dev`, or name another with --url or EVENFLOW_URL."
        return Stop(UNREACHABLE, error.message, way_out=way_out)
    if isinstance(error, FieldRefused):
        return Stop(WRONG, error.problem, path=error.path, way_out="Correct it and try again.")
    if isinstance(error, Refused):
        return Stop(WRONG, error.message, code=error.code)
    return Stop(UNREACHABLE if error.retriable else FAILED, error.message, code=error.code)


def _answered(error: Any, status: int) -> Stop:
    if error.code == "planned":
        exit_code = PLANNED
    elif status in (404, 410):
        exit_code = ABSENT
    elif status in (400, 401, 403, 405, 409, 413, 422):
        exit_code = WRONG
    elif status in (429, 503):
        exit_code = UNREACHABLE
    else:
        exit_code = FAILED
    return Stop(exit_code, error.problem, way_out=error.way_out, path=error.path, code=error.code)


def end(stop: Stop, *, as_json: bool) -> NoReturn:
    """Say what is wrong and what to do, and leave."""
    if as_json:
        body = {"code": stop.code, "path": stop.path, "problem": stop.problem, "way_out": stop.way_out}
        sys.stderr.write(json.dumps(body, ensure_ascii=False) + "\n")
    else:
        where = f"{stop.path}: " if stop.path else ""
        sys.stderr.write(f"error: {printable(where + stop.problem)}\n")
        if stop.way_out:
            sys.stderr.write(f"  {printable(stop.way_out)}\n")
    sys.exit(stop.exit_code)


def printable(text: str) -> str:
    """Text from elsewhere without what could move a terminal's cursor."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
