"""Giving access and taking it back: tokens of the API, and signers of what is written straight to the log.

Both are documents of kind `setting`, so that every copy of the console and placement know them from the log. They are
published here alone: the door of other documents has no such kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from evenflow.console.access.caller import LOCAL, OWNER, UNKNOWN, Caller
from evenflow.console.problems import Problem, absent, invalid
from evenflow.console.service import OWN_VIEW_MS, Console
from evenflow.core.errors import FieldRefused
from evenflow.events import streams
from evenflow.events.contracts.console import DocumentPublished
from evenflow.events.documents.access import (
    KIND,
    SIGNER_PREFIX,
    TOKEN_PREFIX,
    Signer,
    Token,
    parse_signer,
    parse_token,
    signer_document,
    token_document,
)
from evenflow.platform.broker.codec import Fact
from evenflow.platform.security.access_tokens import new_access_token

LIFETIME_S_MAX: Final = 366 * 86_400
LIFETIME_S: Final = 30 * 86_400
TOKENS_MAX: Final = 10_000
SIGNERS_MAX: Final = 10_000
#: What the record of changes calls callers without a token of their own.
NOT_NAMES: Final = (OWNER, LOCAL, UNKNOWN)
_DIGEST_UNKNOWN: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Grant:
    """A document to publish, and how the record of changes names that."""

    name: str
    document: dict[str, Any]
    action: str
    subject: str


class Granting:
    """Publishes tokens and signers, and lists what is there."""

    def __init__(self, console: Console, random_bytes: Callable[[int], bytes]) -> None:
        self._console = console
        self._papers = console.board.papers
        self._random_bytes = random_bytes
        self._issuing = asyncio.Lock()

    # tokens -----------------------------------------------------------------------------------------------------------

    def tokens(self) -> list[Token]:
        """All tokens, revoked and expired ones too, in order of name and issue."""
        found = [token for token in self._parsed(TOKEN_PREFIX, parse_token) if isinstance(token, Token)]
        return sorted(found, key=lambda token: (token.name, token.issued_ms, token.id))

    async def issue(self, document: dict[str, Any], *, lifetime_s: int, who: Caller, reason: str) -> tuple[Token, str]:
        """A new token and its text, which nothing keeps. Raises Problem or FieldRefused."""
        now_ms = self._console.now_ms()
        times = {"issued_ms": now_ms, "expires_ms": now_ms + lifetime_s * 1_000}
        asked = parse_token({**document, **times, "id": "new", "digest": _DIGEST_UNKNOWN})
        if asked.name in NOT_NAMES:
            raise invalid(
                "name", f"is how the record of changes calls another; none of {', '.join(NOT_NAMES)} is given"
            )
        async with self._issuing:  # a second one must see the first
            return await self._issue(asked, now_ms, who, reason)

    async def _issue(self, asked: Token, now_ms: int, who: Caller, reason: str) -> tuple[Token, str]:
        living = [token for token in self.tokens() if _lives(token, now_ms)]
        if any(token.name == asked.name for token in living):
            way_out = "Choose another name, or revoke that one first: evenflow tokens revoke NAME."
            raise Problem(409, "name-taken", f"there is a token {asked.name} already", path="name", way_out=way_out)
        if len(living) >= TOKENS_MAX:
            raise Problem(
                409, "too-many", f"there are {TOKENS_MAX} living tokens", way_out="Give programs one each, not more."
            )
        text, token_id, digest = new_access_token(self._random_bytes)
        token = replace(asked, id=token_id, digest=digest)
        await self._publish_token(token, "token.issue", who, reason)
        return token, text

    async def revoke(self, name: str, *, who: Caller, reason: str) -> Token:
        """Revoke a token by its id or its name; once the answer is there this console lets it in no more.

        Two copies of the console may have given a name at once: by its name every one of them is revoked.
        """
        now_ms = self._console.now_ms()
        tokens = self.tokens()
        found = [t for t in tokens if t.id == name] or [t for t in tokens if t.name == name and _lives(t, now_ms)]
        if not found:
            raise absent("living token", name, "evenflow tokens list shows them.")
        for token in found:
            if not token.revoked:
                await self._publish_token(replace(token, revoked=True), "token.revoke", who, reason)
        return replace(found[-1], revoked=True)

    async def _publish_token(self, token: Token, action: str, who: Caller, reason: str) -> None:
        grant = Grant(f"{TOKEN_PREFIX}{token.id}", token_document(token), action, token.name)
        await self._publish(grant, who, reason)

    # signers ----------------------------------------------------------------------------------------------------------

    def signers(self) -> list[Signer]:
        """All signers, revoked ones too, in order of name."""
        found = [signer for signer in self._parsed(SIGNER_PREFIX, parse_signer) if isinstance(signer, Signer)]
        return sorted(found, key=lambda signer: signer.name)

    async def put_signer(self, name: str, document: dict[str, Any], *, who: Caller, reason: str) -> Signer:
        """Let the holder of a key submit in the name of tenants. Raises Problem or FieldRefused."""
        if document.get("name", name) != name:
            raise invalid("name", f"is not {name}, under which the signer is put")
        if "revoked" in document:
            raise invalid("revoked", "is said by evenflow signers revoke alone")
        signer = parse_signer({"name": name, **document})
        others = [one for one in self.signers() if not one.revoked and one.name != name]
        if len(others) >= SIGNERS_MAX:
            raise Problem(409, "too-many", f"there are {SIGNERS_MAX} signers", way_out="Let one key speak for more.")
        await self._publish_signer(signer, "signer.publish", who, reason)
        return signer

    async def revoke_signer(self, name: str, *, who: Caller, reason: str) -> Signer:
        """Take a signer's right back. Raises Problem when there is none."""
        found = next((signer for signer in self.signers() if signer.name == name), None)
        if found is None:
            raise absent("signer", name, "evenflow signers list shows them.")
        signer = replace(found, revoked=True)
        if not found.revoked:
            await self._publish_signer(signer, "signer.revoke", who, reason)
        return signer

    async def _publish_signer(self, signer: Signer, action: str, who: Caller, reason: str) -> None:
        grant = Grant(f"{SIGNER_PREFIX}{signer.name}", signer_document(signer), action, signer.name)
        await self._publish(grant, who, reason)

    # ------------------------------------------------------------------------------------------------------------------

    async def _publish(self, grant: Grant, who: Caller, reason: str) -> None:
        key = f"{KIND}/{grant.name}"
        version = self._papers.version(key) + 1
        fact = DocumentPublished(
            kind="setting",
            name=grant.name,
            version=version,
            document=grant.document,
            who=who.name,
            reason=reason or who.reason,
        )
        await self._console.publish(
            Fact(streams.POLICIES, fact),
            action=grant.action,
            subject=grant.subject,
            parameters={name: value for name, value in grant.document.items() if name != "digest"},
            who=who,
            reason=reason,
        )
        if not await self._console.seen(lambda: self._papers.version(key) >= version, OWN_VIEW_MS):
            raise Problem(
                503,
                "not-seen",
                f"{grant.action} of {grant.subject} is on the log, but this console has not read it back yet",
                way_out="List it again in a moment; until it shows, it is not in force here.",
            )

    def _parsed(self, prefix: str, parse: Callable[[object], Any]) -> list[Any]:
        found: list[Any] = []
        for key, paper in self._papers.by_key.items():
            if key.startswith(f"{KIND}/{prefix}"):
                try:
                    found.append(parse(paper.body.document))
                except FieldRefused:  # written by newer rules; such a one is in force nowhere here
                    continue
        return found


def _lives(token: Token, now_ms: int) -> bool:
    return not token.revoked and now_ms < token.expires_ms
