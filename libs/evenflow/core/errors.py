"""The one error tree.

    EvenflowError            code, retriable, fields
    ├── Refused              the caller's input is wrong; never retried
    │   ├── FieldRefused     names the field's path and the way out
    │   └── Conflict         the thing exists already with another content
    ├── Unavailable          a server or store does not answer; retried
    └── Ended                this process must end (fenced, lost, unknown, stuck)

`retriable` alone decides between retry and dead letter.
"""

from __future__ import annotations


class EvenflowError(Exception):
    """Base of every error the product raises on purpose."""

    code: str = "error"
    retriable: bool = False

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields: dict[str, object] = fields


class Refused(EvenflowError):
    """The input is wrong and stays wrong however often it is sent."""

    code = "refused"


class FieldRefused(Refused):
    """One field of a document is wrong; `path` is dotted, as `resources.devices.share`."""

    code = "field-refused"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem, path=path)
        self.path = path
        self.problem = problem


class Conflict(Refused):
    """The same identity exists with another content."""

    code = "conflict"


class Unavailable(EvenflowError):
    """A server or store did not answer; the same call may succeed later."""

    code = "unavailable"
    retriable = True


class Ended(EvenflowError):
    """The process can't go on and must be restarted; `exit_code` says why."""

    code = "ended"

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message, exit_code=exit_code)
        self.exit_code = exit_code
