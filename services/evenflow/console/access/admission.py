"""Who is it: a request's bearer token becomes a caller, or 401 with what to do.

Without an owner's token among the settings the console is a local one: whoever reaches it owns it, and is called what
it calls itself. The door of the process sees to it that such a console listens on loopback alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from fastapi import Request
from starlette.datastructures import QueryParams

from evenflow.console.access.caller import LOCAL, OWNER, SCOPE, Caller
from evenflow.console.access.rights import RIGHTS
from evenflow.console.problems import Problem
from evenflow.console.projection.papers import Papers
from evenflow.console.settings import ConsoleSettings
from evenflow.core.errors import FieldRefused
from evenflow.core.lifecycle.roles import Role
from evenflow.events.documents.access import KIND, TOKEN_PREFIX, Token, parse_token
from evenflow.platform.clock import Clock
from evenflow.platform.security import access_tokens

WHO_MAX: Final = 120
REASON_MAX: Final = 1_000
WHO_HEADER: Final = b"x-evenflow-who"
REASON_HEADER: Final = b"x-evenflow-reason"
MINUTE_MS: Final = 60_000
ADDRESSES_MAX: Final = 10_000
TENANT_DEFAULT: Final = "default"
HINT: Final = "Set EVENFLOW_TOKEN_FILE to a file with your token, or send authorization: Bearer TOKEN."


class Admission:
    """Tells callers apart by the documents of their tokens."""

    def __init__(self, settings: ConsoleSettings, papers: Papers, clock: Clock) -> None:
        self._papers = papers
        self._clock = clock
        self._failures = Failures(settings.wrong_tokens_per_minute_max, clock)
        owner = settings.owner_token.get_secret_value()
        self._owner_digest = access_tokens.digest_of(owner) if owner else ""

    @property
    def wants_tokens(self) -> bool:
        """Whether nobody gets in without one."""
        return bool(self._owner_digest)

    def caller(self, scope: Mapping[str, Any]) -> Caller:
        """Who asks. Raises Problem: 401 for no token or a wrong one, 429 when an address showed too many of those."""
        headers = dict(scope.get("headers", []))
        client = scope.get("client")
        address = str(client[0]) if client else ""
        if sum(name == b"authorization" for name, _ in scope.get("headers", ())) > 1:
            # Whoever stands before the console may have looked at the other one.
            raise self._refused(address, "there are two authorization headers", "token-refused")
        caller = self._known(headers, address)
        caller.address = address
        caller.reason = _text(unquote(headers.get(REASON_HEADER, b"").decode("latin-1")), REASON_MAX)
        return caller

    def _known(self, headers: Mapping[bytes, bytes], address: str) -> Caller:
        shown = headers.get(b"authorization", b"").decode("latin-1")
        if not shown:
            if self.wants_tokens:
                raise self._refused(address, "the console wants a token", "token-needed")
            return Caller(_text(headers.get(WHO_HEADER, b"").decode("latin-1"), WHO_MAX) or LOCAL, Role.OWNER)
        scheme, _, text = shown.partition(" ")
        if scheme.lower() != "bearer":
            raise self._refused(address, "only bearer tokens are known here", "token-needed")
        return self._by_token(text.strip(), address)

    def _by_token(self, text: str, address: str) -> Caller:
        if self._owner_digest and access_tokens.matches(text, self._owner_digest):
            return Caller(OWNER, Role.OWNER)
        token_id = access_tokens.token_id_of(text)
        token = self._token(token_id) if token_id else None
        right = access_tokens.matches(text, token.digest if token is not None else access_tokens.NOBODY)
        if token is None or not right:
            raise self._refused(address, "the token is not known", "token-refused")
        # Only who holds the secret learns what became of it.
        if ended := self._ended(token):
            raise self._refused(address, f"the token {token.name} {ended}", "token-refused")
        return Caller(token.name, token.role, token.tenant, token.queue, lets_in=self._holding(token))

    def _ended(self, token: Token) -> str:
        """Why a token lets nobody in any more; empty while it does."""
        if token.revoked:
            return "was revoked"
        return "expired" if self._clock.now_ms() >= token.expires_ms else ""

    def _holding(self, token: Token) -> Callable[[], bool]:
        """Whether a token that let somebody in still would. A token has another version only once it is revoked."""
        key = f"{KIND}/{TOKEN_PREFIX}{token.id}"
        version = self._papers.version(key)
        return lambda: self._papers.version(key) == version and not self._ended(token)

    def _token(self, token_id: str) -> Token | None:
        paper = self._papers.by_key.get(f"{KIND}/{TOKEN_PREFIX}{token_id}")
        if paper is None:
            return None
        try:
            return parse_token(paper.body.document)
        except FieldRefused:  # written by newer rules than these: what they bound is not known, so it lets nobody in
            return None

    def _refused(self, address: str, problem: str, code: str) -> Problem:
        if self._failures.one_more(address):
            return Problem(401, code, problem, way_out=HINT)
        return Problem(429, "too-many-attempts", problem, way_out=f"Wait a minute. {HINT}")


class Failures:
    """Wrong tokens by address within the running minute. Right ones are never held up by them."""

    def __init__(self, per_minute_max: int, clock: Clock) -> None:
        self._max = per_minute_max
        self._clock = clock
        self._minute = 0
        self._counts: dict[str, int] = {}

    def one_more(self, address: str) -> bool:
        """Count one; False when there were too many, or too many addresses to count."""
        minute = self._clock.monotonic_ms() // MINUTE_MS
        if minute != self._minute:
            self._minute, self._counts = minute, {}
        count = self._counts.get(address, 0)
        if count >= self._max or (not count and len(self._counts) >= ADDRESSES_MAX):
            return False
        self._counts[address] = count + 1
        return True


def _text(text: str, length_max: int) -> str:
    """Printable text within bounds."""
    return "".join(character for character in text.strip() if character.isprintable())[:length_max]


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The caller that the guard let in."""
    caller: Caller = scope[SCOPE]
    return caller


async def authorise(request: Request) -> None:
    """Every route's first step. Raises Problem (403) unless the caller's role and bounds allow this very route."""
    scope = request.scope
    caller = caller_of(scope)
    right = RIGHTS.get((scope["method"], str(getattr(scope.get("route"), "path", ""))))
    if right is None:
        raise Problem(403, "role-needed", "this address is in no table of rights", way_out="Report it; it is a fault.")
    role = right.needed(request.path_params)
    if role is not None:
        caller.need(role, right.action or "reading this")
    if "task" in request.path_params:
        caller.keep_to(tenant=tenant_of(scope))


def tenant_of(scope: Mapping[str, Any]) -> str:
    """The tenant that a request's address names, as its route reads it: the last one counts."""
    return QueryParams(scope.get("query_string", b"")).get("tenant", TENANT_DEFAULT)
