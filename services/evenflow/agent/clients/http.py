"""The exchange of real agents: HTTP over a pool of connections."""

from __future__ import annotations

from typing import Final

import httpx

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse
from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.platform.security.channels import authorities, may_carry_secrets

ANSWER_BYTES_MAX = 64 * 1024 * 1024

_SPENT: Final = httpx.ByteStream(b"")


class HttpExchange:
    """Requests to one gateway's URL, such as https://gateway:7071; plain HTTP only on this machine.

    `ca` is a file of certificates to trust instead of the usual ones.
    """

    def __init__(self, url: str, ca: str = "") -> None:
        if not url.startswith(("http://", "https://")):
            raise FieldRefused("url", "must begin with http:// or https://")
        if not may_carry_secrets(url):
            raise FieldRefused("url", f"{url[:200]} is plain HTTP beyond this machine; join over https://")
        self._url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=8), trust_env=False, verify=authorities(ca) if ca else True
        )

    async def __call__(self, request: HttpRequest, *, timeout_ms: int) -> HttpResponse:
        """One request; whatever goes wrong on the way is Unavailable."""
        try:
            async with self._client.stream(
                request.method,
                self._url + request.target,
                headers=dict(request.headers),
                content=request.body,
                timeout=timeout_ms / 1000,
            ) as answer:
                body = await _body(answer)
            answer.stream = _SPENT  # httpx's own holds the answer, and would wait with it for the collector
            return HttpResponse(answer.status_code, body)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unavailable(f"no answer from {self._url}: {type(error).__name__}: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


async def _body(answer: httpx.Response) -> bytes:
    """An answer's body, read no further than its bound."""
    parts: list[bytes] = []
    size = 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > ANSWER_BYTES_MAX:
            raise Unavailable(f"the gateway's answer is larger than {ANSWER_BYTES_MAX} bytes")
        parts.append(part)
    return b"".join(parts)
