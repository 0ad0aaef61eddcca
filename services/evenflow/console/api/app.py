"""The API put together: routes, the form of every error, and the guard around it all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from evenflow.console.access.admission import authorise, caller_of
from evenflow.console.api.reading import reply
from evenflow.console.problems import Problem, Refusal, problem_of
from evenflow.core.errors import EvenflowError

VERSION: Final = "1"
REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    401: {"model": Refusal, "description": "No token, or one that is not known, expired or revoked"},
    403: {
        "model": Refusal,
        "description": "Another role is needed, the token is bounded to something else, the API has another name, or"
        " another site's page asks",
    },
    404: {"model": Refusal, "description": "There is no such thing"},
    422: {"model": Refusal, "description": "A field of the body or of the address is wrong, or planned"},
    429: {"model": Refusal, "description": "Too many wrong tokens from this address"},
    503: {"model": Refusal, "description": "Not ready, or the log or a store is away; try again"},
}
#: Whatever changes something, or may carry a body, is refused for these too.
REFUSALS_OF_CHANGES: Final[dict[str, str]] = {
    "400": "The body ended before it was whole",
    "409": "It is not as the caller thought: another content, another version, over already",
    "413": "The body is larger than what is read",
}
CHANGES: Final = ("post", "put", "patch", "delete")
_WAYS: Final = {
    404: "GET /api/v1/openapi.json lists the addresses.",
    405: "GET /api/v1/openapi.json lists the methods of each address.",
}


def application(routers: Sequence[APIRouter]) -> FastAPI:
    """The API's application, without its guard."""
    app = FastAPI(
        title="Evenflow",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
        redirect_slashes=False,
    )
    for router in routers:
        app.include_router(router, responses=REFUSALS, dependencies=[Depends(authorise)])
    plain = app.openapi

    def described() -> dict[str, Any]:
        """The routes' description with what every change may be refused for."""
        if app.openapi_schema is None:
            for operations in plain()["paths"].values():
                for method in [one for one in operations if one in CHANGES]:
                    answers = operations[method]["responses"]
                    like = answers["422"]["content"]
                    more = {code: {"content": like, "description": why} for code, why in REFUSALS_OF_CHANGES.items()}
                    operations[method]["responses"] = dict(sorted((answers | more).items()))
        return plain()

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to extend its description
    app.add_exception_handler(EvenflowError, on_product_error)
    app.add_exception_handler(RequestValidationError, on_wrong_parameter)
    app.add_exception_handler(HTTPException, on_unknown_address)
    return app


async def on_product_error(request: Request, error: Exception) -> Response:
    """An error of the product's tree."""
    return _answer(request, problem_of(error))


async def on_wrong_parameter(request: Request, error: Exception) -> Response:
    """A parameter of the address is wrong: the first one is named."""
    first: dict[str, Any] = dict(error.errors()[0]) if isinstance(error, RequestValidationError) else {}
    place = [str(step) for step in first.get("loc", ()) if step not in ("query", "path", "body")]
    message = str(first.get("msg", "is not valid"))
    if first.get("type") == "extra_forbidden":
        message = "is no parameter of this address"
    problem = Problem(
        422, "invalid", message, path=".".join(place)[:200], way_out="GET /api/v1/openapi.json lists the parameters."
    )
    return _answer(request, problem)


async def on_unknown_address(request: Request, error: Exception) -> Response:
    """An address or a method that the API does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = str(error.detail) if isinstance(error, HTTPException) else "failed"
    code = {404: "not-found", 405: "method-refused"}.get(status, "refused")
    return _answer(request, Problem(status, code, text, way_out=_WAYS.get(status, "Correct the request.")))


def _answer(request: Request, problem: Problem) -> Response:
    caller_of(request.scope).refusal = problem
    answer = reply(problem.row(), problem.status)
    if problem.status == 503:
        answer.headers["retry-after"] = "1"
    return answer
