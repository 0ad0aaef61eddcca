"""What a client's call may raise.

EvenflowError
├── Answered        the API refused: status, code, path, problem, way_out
└── Unreachable     no answer came; the same call may succeed later
"""

from __future__ import annotations

from typing import Any

from evenflow.core.errors import EvenflowError, Unavailable


class Answered(EvenflowError):
    """The API's refusal, as it gave it."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.code = str(body.get("code", "error"))
        self.path = str(body.get("path", ""))
        self.problem = str(body.get("problem", f"the server answered {status}"))
        self.way_out = str(body.get("way_out", ""))
        self.body = body
        self.retriable = status in (429, 503)
        super().__init__(f"{self.path}: {self.problem}" if self.path else self.problem)


class Unreachable(Unavailable):
    """No answer."""

    code = "unreachable"
