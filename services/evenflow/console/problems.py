"""Every answer that is no success: a status, a code, the field's path, what is wrong, and what to do about it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel

from evenflow.core.errors import Conflict, EvenflowError, FieldRefused, Refused, Unavailable
from evenflow.events.documents.reading import Unreadable

TEXT_MAX: Final = 500


class Refusal(BaseModel):
    """The body of every answer that is no success."""

    code: str
    path: str
    problem: str
    way_out: str
    problems: list[dict[str, str]] = []


class Problem(EvenflowError):
    """An answer of the API that is an error. `status` is HTTP's."""

    def __init__(
        self,
        status: int,
        code: str,
        problem: str,
        *,
        path: str = "",
        way_out: str = "",
        more: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__(problem)
        self.status = status
        self.code = code
        self.path = path
        self.problem = problem
        self.way_out = way_out
        self.more = more or []

    def row(self) -> dict[str, Any]:
        """The body of the answer."""
        shown: dict[str, Any] = {
            "code": self.code,
            "path": self.path[:TEXT_MAX],
            "problem": self.problem[:TEXT_MAX],
            "way_out": self.way_out[:TEXT_MAX],
        }
        if self.more:
            shown["problems"] = self.more
        return shown


def absent(what: str, name: str, way_out: str) -> Problem:
    """Something that is not there."""
    return Problem(404, "not-found", f"there is no {what} {printable(name)}", way_out=way_out)


def invalid(path: str, problem: str, way_out: str = "Correct the field and send it again.") -> Problem:
    """One field of a body or of the address is wrong."""
    return Problem(422, "invalid", problem, path=path, way_out=way_out)


def planned(paths: list[str]) -> Problem:
    """The document is good but asks for what is not built yet."""
    return Problem(
        422,
        "planned",
        "is planned and does nothing yet",
        path=paths[0],
        way_out="Leave the field out, or at its default.",
        more=[{"path": path, "problem": "is planned and does nothing yet"} for path in paths],
    )


def printable(name: str) -> str:
    """A name from outside, safe to print."""
    return ascii(name[:80])


def problem_of(error: BaseException) -> Problem:
    """Any error of the product's tree as an answer; anything else is our fault and says no more than that."""
    match error:
        case Problem():
            return error
        case Unreadable():
            where = f"line {error.line}, column {error.column}: " if error.line is not None else ""
            return Problem(422, "unreadable", where + error.problem, way_out="Send one JSON or YAML document in UTF-8.")
        case FieldRefused():
            return invalid(error.path, error.problem)
        case Conflict():
            return Problem(409, error.code, error.message, way_out="Read the newest version and decide again.")
        case Refused():
            return Problem(422, error.code, error.message, way_out="Correct what is named and send it again.")
        case Unavailable():
            return Problem(503, error.code, error.message, way_out="Try again in a moment; nothing was lost.")
        case _:
            return Problem(
                500,
                "internal",
                "the console failed at this",
                way_out="Report it with the time; the log names the cause.",
            )
