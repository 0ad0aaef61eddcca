"""Tokens, signers and invitations of nodes over HTTP."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from evenflow.console.access.admission import caller_of
from evenflow.console.access.granting import LIFETIME_S, LIFETIME_S_MAX, Granting
from evenflow.console.api.reading import DOCUMENT_BODY, Strict, document_of, fields_of, reason_in, reply
from evenflow.console.problems import Problem, absent, invalid
from evenflow.console.service import Console
from evenflow.console.stores import Invitations
from evenflow.events.documents.access import Signer, Token, signer_document, token_document
from evenflow.platform.security.join_tokens import LIFETIME_MS_MAX, TokenUsed

INVITATION_S: Final = 86_400
_INVITATION: Final = re.compile("[0-9a-f]{16}")


class Why(Strict):
    """Why a right is given or taken."""

    reason: str = Field(default="", max_length=1_000)


class AccessRoutes:
    """The routes of this part."""

    def __init__(self, console: Console, granting: Granting, invitations: Invitations) -> None:
        self._console = console
        self._invitations = invitations
        self._granting = granting

    def router(self) -> APIRouter:
        """All of them."""
        router = APIRouter(prefix="/api/v1", tags=["access"])
        add = router.add_api_route
        add("/tokens", self.tokens, methods=["GET"], summary="Tokens, without their secrets")
        add(
            "/tokens",
            self.issue,
            methods=["POST"],
            status_code=201,
            summary="Issue a token; its text is in this answer and nowhere else",
            openapi_extra=DOCUMENT_BODY,
        )
        add("/tokens/{token}", self.revoke, methods=["DELETE"], summary="Revoke a token by its id or name")
        add("/signers", self.signers, methods=["GET"], summary="Who may sign submissions on the log")
        add(
            "/signers/{signer}",
            self.put_signer,
            methods=["PUT"],
            summary="Let a key's holder submit for tenants",
            openapi_extra=DOCUMENT_BODY,
        )
        add("/signers/{signer}", self.revoke_signer, methods=["DELETE"], summary="Take a signer's right back")
        add(
            "/invitations",
            self.invite,
            methods=["POST"],
            status_code=201,
            summary="Make a one-time join token for a node; its text is in this answer and nowhere else",
        )
        add("/invitations/{invitation}", self.uninvite, methods=["DELETE"], summary="Take an unused join token back")
        return router

    async def tokens(self) -> Response:
        """GET /tokens."""
        now_ms = self._console.now_ms()
        return reply({"items": [token_row(token, now_ms) for token in self._granting.tokens()]})

    async def issue(self, request: Request) -> Response:
        """POST /tokens."""
        limit = self._console.settings.body_bytes_max
        given = await fields_of(request, limit, "name", "role", "tenant", "queue", "expires_s", "reason")
        reason = reason_in(given)
        asked = {name: value for name, value in given.items() if name not in ("expires_s", "reason")}
        token, text = await self._granting.issue(
            asked,
            lifetime_s=_lifetime_s(given, LIFETIME_S, LIFETIME_S_MAX),
            who=caller_of(request.scope),
            reason=reason,
        )
        return reply(token_row(token, self._console.now_ms()) | {"token": text}, 201)

    async def revoke(self, token: str, request: Request, query: Annotated[Why, Query()]) -> Response:
        """DELETE /tokens/{token}."""
        revoked = await self._granting.revoke(token, who=caller_of(request.scope), reason=query.reason)
        return reply(token_row(revoked, self._console.now_ms()))

    async def signers(self) -> Response:
        """GET /signers."""
        return reply({"items": [signer_row(signer) for signer in self._granting.signers()]})

    async def put_signer(self, signer: str, request: Request, query: Annotated[Why, Query()]) -> Response:
        """PUT /signers/{signer}."""
        document = await document_of(request, self._console.settings.body_bytes_max)
        if not isinstance(document, dict):
            raise invalid("", "must be a map of fields")
        put = await self._granting.put_signer(signer, document, who=caller_of(request.scope), reason=query.reason)
        return reply(signer_row(put))

    async def revoke_signer(self, signer: str, request: Request, query: Annotated[Why, Query()]) -> Response:
        """DELETE /signers/{signer}."""
        revoked = await self._granting.revoke_signer(signer, who=caller_of(request.scope), reason=query.reason)
        return reply(signer_row(revoked))

    async def invite(self, request: Request) -> Response:
        """POST /invitations."""
        given = await fields_of(request, self._console.settings.body_bytes_max, "expires_s", "reason")
        who, reason = caller_of(request.scope), reason_in(given)
        seconds = _lifetime_s(given, INVITATION_S, LIFETIME_MS_MAX // 1_000)
        text = await self._invitations.issue(lifetime_ms=seconds * 1_000, by=who.name)
        invitation = text.split("_")[1]
        expires_ms = self._console.now_ms() + seconds * 1_000
        await self._console.publish(
            action="node.invite", subject=invitation, parameters={"expires_ms": expires_ms}, who=who, reason=reason
        )
        return reply({"invitation": invitation, "expires_ms": expires_ms, "token": text}, 201)

    async def uninvite(self, invitation: str, request: Request, query: Annotated[Why, Query()]) -> Response:
        """DELETE /invitations/{invitation}."""
        try:
            revoked = bool(_INVITATION.fullmatch(invitation)) and await self._invitations.revoke(invitation)
        except TokenUsed as used:
            raise Problem(
                409, used.code, used.message, way_out="Take that node out: evenflow nodes revoke NODE."
            ) from used
        if not revoked:
            raise absent("invitation", invitation, "evenflow changes shows the ids that were given out.")
        await self._console.publish(
            action="node.uninvite",
            subject=invitation,
            parameters={},
            who=caller_of(request.scope),
            reason=query.reason,
        )
        return reply({"invitation": invitation, "revoked": True})


def token_row(token: Token, now_ms: int) -> dict[str, Any]:
    """A token as the API shows it: never its digest."""
    state = "revoked" if token.revoked else "expired" if now_ms >= token.expires_ms else "living"
    shown = {"tenant": "", "queue": "", "revoked": False, **token_document(token), "state": state}
    del shown["digest"]
    return shown


def signer_row(signer: Signer) -> dict[str, Any]:
    """A signer as the API shows it."""
    return {"revoked": False, **signer_document(signer)}


def _lifetime_s(given: dict[str, Any], usual: int, longest: int) -> int:
    seconds = given.get("expires_s", usual)
    if type(seconds) is not int or not 1 <= seconds <= longest:
        raise invalid("expires_s", f"must be whole seconds from 1 to {longest}")
    return seconds
