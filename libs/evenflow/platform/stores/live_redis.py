"""Live load on Redis, real, fake or a cluster: a hash per site (version, written_ms, frame) and the set of sites.

The script touches one key, so it works on Redis Cluster. Nothing expires by Redis's clock: `written_ms` is the writer's
argument and readers judge age by it. Only commands of Redis 7.0 are used.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisClusterException, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from evenflow.core.errors import FieldRefused, Unavailable
from evenflow.platform.security.access import Access, tls_reason
from evenflow.platform.stores import limits

CONNECT_S: Final = 2.0
ANSWER_S: Final = 2.0
RETRY_COUNT: Final = 1
POOL_COUNT_MAX: Final = 16

_PUT: Final = """
local version = redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'written_ms', ARGV[1], 'frame', ARGV[2])
return version
"""
_FIELDS: Final = ["version", "written_ms", "frame"]


class RedisLiveLoad:
    """The LiveLoad port over a `redis.asyncio` client that returns bytes; closes the client it was given."""

    def __init__(self, client: Redis | RedisCluster, *, namespace: str = "evenflow") -> None:
        self._client = client
        self._prefix = f"{namespace}:load:"
        self._index = f"{namespace}:load-sites"
        self._put = client.register_script(_PUT)

    async def put_frame(self, site: str, frame: bytes, *, written_ms: int) -> int:
        """Replace the site's frame and return its version."""
        limits.check_site(site)
        limits.check_frame(frame)
        async with _errors():
            # Named first: a crash between the two leaves a site without a frame, which readers skip.
            await _wait(self._client.sadd(self._index, site))
            return int(await _wait(self._put(keys=[self._prefix + site], args=[written_ms, frame])))

    async def frames(self, sites: Sequence[str]) -> dict[str, tuple[int, int, bytes]]:
        """Frames of those sites that have one, in one round trip."""
        for site in sites:
            limits.check_site(site)
        if not sites:
            return {}
        async with _errors():
            pipeline = self._client.pipeline(transaction=False)
            for site in sites:
                pipeline.hmget(self._prefix + site, _FIELDS)
            rows = await _wait(pipeline.execute())
        return {
            site: (int(version), int(written_ms), bytes(frame))
            for site, (version, written_ms, frame) in zip(sites, rows, strict=True)
            if frame is not None
        }

    async def sites(self) -> list[str]:
        """Sites that have a frame, in order."""
        async with _errors():
            named = sorted(name.decode() for name in await _wait(self._client.smembers(self._index)))
            pipeline = self._client.pipeline(transaction=False)
            for site in named:
                pipeline.exists(self._prefix + site)
            present = await _wait(pipeline.execute()) if named else []
        return [site for site, there in zip(named, present, strict=True) if there]

    async def clear(self) -> None:
        """Remove every frame."""
        async with _errors():
            named = sorted(name.decode() for name in await _wait(self._client.smembers(self._index)))
            pipeline = self._client.pipeline(transaction=False)
            for site in named:
                pipeline.delete(self._prefix + site)
            pipeline.delete(self._index)
            await _wait(pipeline.execute())

    async def close(self) -> None:
        """Give the connections back."""
        await self._client.aclose()


def _login(url: str, access: Access | None) -> dict[str, Any]:
    """What the client logs in with; a server's certificate must be of a believed CA and name the server."""
    settings: dict[str, Any] = {}
    if access is not None and access.user:
        settings |= {"username": access.user, "password": access.password.get_secret_value()}
    if url.startswith("rediss"):
        settings |= {"ssl_cert_reqs": "required", "ssl_check_hostname": True, "ssl_min_version": ssl.TLSVersion.TLSv1_2}
        if access is not None and access.ca_file is not None:
            access.context()  # says what is wrong with the file
            settings["ssl_ca_certs"] = str(access.ca_file)
    elif access is not None and access.over_tls:
        raise FieldRefused("live", "must begin with rediss, since live_ca_file asks for TLS")
    return settings


def _bounds() -> dict[str, Any]:
    """Bounds of every wait: the library's own defaults retry for most of a minute."""
    return {
        "socket_connect_timeout": CONNECT_S,
        "socket_timeout": ANSWER_S,
        "health_check_interval": 15,
        "max_connections": POOL_COUNT_MAX,
        "retry": Retry(ExponentialBackoff(cap=0.2, base=0.02), RETRY_COUNT),
    }


def open_redis(url: str, access: Access | None = None) -> RedisLiveLoad:
    """Live load on a server."""
    client = Redis.from_url(url, **_login(url, access), **_bounds())
    return RedisLiveLoad(client)


def open_redis_cluster(url: str, access: Access | None = None) -> RedisLiveLoad:
    """Live load on a Redis Cluster, found through any node of redis+cluster://host:port[,host:port…].

    Raises FieldRefused when a node is no host:port.
    """
    scheme, _, rest = url.partition("://")
    nodes, slash, tail = rest.partition("/")
    credentials, at, hosts = nodes.rpartition("@")
    places = [_place(one) for one in hosts.split(",")]
    host, port = places[0]
    client = RedisCluster.from_url(
        f"{scheme.removesuffix('+cluster')}://{credentials}{at}{host}:{port}{slash}{tail}",
        startup_nodes=[ClusterNode(host, port) for host, port in places],
        **_login(url, access),
        **_bounds(),
    )
    return RedisLiveLoad(client)


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise FieldRefused("live", "each node of a cluster must be host:port, as redis+cluster://a:6379,b:6379")
    return host, int(port)


async def _wait(answer: Any) -> Any:
    """redis-py types one class for both worlds; here every answer is awaitable."""
    return await answer


@contextlib.asynccontextmanager
async def _errors() -> AsyncIterator[None]:
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        raise Unavailable(f"live load store: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    """What is wrong and what to do, as far as the server or the connection says."""
    text = str(error)
    if isinstance(error, NoPermissionError) or "NOPERM" in text:
        return f"this user may not do this on live load: {text[:200]}; docs/security.md has the users of Redis"
    if isinstance(error, AuthenticationError) or "NOAUTH" in text:
        return f"it refuses this user ({text[:100]}): set live_user and live_password"
    if "WRONGTYPE" in text:
        return (
            "a key that begins with evenflow:load is another's and was left alone: name a database of our own in "
            "redis://host:port/NUMBER, or remove that key"
        )
    reason = tls_reason(text, "live")
    if reason is None and isinstance(error, RedisConnectionError | RedisTimeoutError) and "refused" not in text:
        reason = f"{type(error).__name__}: {text[:200]}; if it speaks TLS, write rediss in the place of redis"
    return reason or f"{type(error).__name__}: {text[:200]}"
