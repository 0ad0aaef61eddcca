"""Live load where another's keys are: one line that says what to do, and nothing of theirs is touched."""

from __future__ import annotations

import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from evenflow.core.errors import Unavailable
from evenflow.platform.stores.live_redis import RedisLiveLoad


@pytest.mark.parametrize("key", ["evenflow:load-sites", "evenflow:load:zrh"])
async def test_a_key_of_another_is_named_left_alone_and_waited_for(key: str) -> None:
    """Proves that a shared Redis can't be harmed by us, and that we go on once the key is gone."""
    server = FakeServer()
    theirs = FakeAsyncRedis(server=server)
    await theirs.set(key, "theirs")
    live = RedisLiveLoad(FakeAsyncRedis(server=server))
    try:
        with pytest.raises(Unavailable, match=r"is another's and was left alone: name a database of our own"):
            await live.put_frame("zrh", b"frame", written_ms=1)
        assert await theirs.get(key) == b"theirs"
        await theirs.delete(key)
        assert await live.put_frame("zrh", b"frame", written_ms=2) == 1
        assert await live.frames(["zrh"]) == {"zrh": (1, 2, b"frame")}
    finally:
        await live.close()
        await theirs.aclose()
