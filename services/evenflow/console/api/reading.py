"""What requests carry, read strictly and within bounds; and how answers are written."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json
from starlette.requests import ClientDisconnect

from evenflow.console.problems import Problem, invalid
from evenflow.core.errors import Refused
from evenflow.events.documents.reading import read_document

PAGE_MAX: Final = 500
#: Longest that an answer waits for what was asked to be waited for.
WAIT_MS_MAX: Final = 25_000
REASON_MAX: Final = 1_000

#: How a body that is a whole document is described.
DOCUMENT_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}


class Strict(BaseModel):
    """Base of query parameters: unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OfTask(Strict):
    """Whose task."""

    tenant: str = Field(default="default", max_length=128)


class Page(Strict):
    """How many rows."""

    limit: int = Field(default=100, ge=1, le=PAGE_MAX)


InTenant = Annotated[OfTask, Query()]
Paged = Annotated[Page, Query()]


def reply(value: Any, status: int = 200) -> Response:
    """A JSON answer."""
    return Response(to_json(value) + b"\n", status_code=status, media_type="application/json")


async def body_of(request: Request, bytes_max: int) -> bytes:
    """The body, read no further than its bound. Raises Problem."""
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > bytes_max:
                raise Problem(
                    413, "too-large", f"the body is larger than {bytes_max} bytes", way_out="Send a smaller document."
                )
            parts.append(part)
    except ClientDisconnect:
        raise Problem(400, "incomplete", "the body ended before it was whole", way_out="Send it again.") from None
    return b"".join(parts)


async def document_of(request: Request, bytes_max: int) -> object:
    """The body as a document, JSON or YAML. Raises Problem or Refused."""
    raw = await body_of(request, bytes_max)
    if not raw.strip():
        raise invalid("", "the body is empty", "Send one JSON or YAML document.")
    return read_document(raw, source="the body")


async def fields_of(request: Request, bytes_max: int, *known: str) -> dict[str, Any]:
    """A small body of known fields; an empty one is allowed. Raises Problem for an unknown field."""
    raw = await body_of(request, bytes_max)
    if not raw.strip():
        return {}
    document = read_document(raw, source="the body")
    if not isinstance(document, dict):
        raise invalid("", "must be a map of fields")
    for name in document:
        if name not in known:
            raise invalid(ascii(name[:80])[1:-1], f"is unknown; known are {', '.join(known)}")
    return document


def reason_in(document: dict[str, Any]) -> str:
    """The reason given, if any. Raises Refused."""
    reason = document.get("reason", "")
    if not isinstance(reason, str) or len(reason) > REASON_MAX:
        raise invalid("reason", f"must be text of at most {REASON_MAX} characters")
    try:
        reason.encode()
    except UnicodeEncodeError:
        raise Refused("reason: is not valid Unicode") from None
    return reason


def key_of_task(query: OfTask, task: str) -> str:
    """tenant/task."""
    return f"{query.tenant}/{task}"


def permalink(tenant: str, task: str) -> str:
    """Where a task's status stays."""
    return f"/api/v1/tasks/{task}" + ("" if tenant == "default" else f"?tenant={tenant}")
