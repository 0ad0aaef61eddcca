"""An S3-compatible server over a folder: versitygw, built with Go. A bucket is a folder of its root."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from evenflow.testkit.servers.artifacts import GoProgram, Say, obtain
from evenflow.testkit.servers.kinds.server import Server, ask
from evenflow.testkit.servers.process import LOOPBACK

BUCKET: Final = "evenflow"
REGION: Final = "us-east-1"
#: Loopback only, data of tests only: these open nothing that matters.
ACCESS_KEY: Final = "evenflow"
SECRET_KEY: Final = "evenflow-on-loopback"  # noqa: S105  as above
HEALTH: Final = "/health"


class Versitygw(GoProgram):
    """The server from its module."""

    name = "objects"
    material = "local/objects"
    package = "github.com/versity/versitygw/cmd/versitygw"
    program = "versitygw"


class ObjectServer(Server):
    """One server with versions, one bucket and one pair of keys."""

    kind = "objects"
    name = "the object server (versitygw)"
    program: Path

    def obtain(self, say: Say) -> None:
        """The built server."""
        self.program = obtain(Versitygw(self.root), self.cache, say) / Versitygw.program

    def prepare(self) -> None:
        """The bucket, and folders for versions and accounts."""
        for name in ("objects", "versions", "accounts"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "objects" / BUCKET).mkdir(exist_ok=True)

    def command(self, node: int = 0) -> list[str]:
        """Absolute paths, since it changes into its root; with accounts a wrong key is answered 403, not 404."""
        front = ("--port", f"{LOOPBACK}:{self.port}", "--region", REGION, "--health", HEALTH, "--quiet")
        keys = ("--access", ACCESS_KEY, "--secret", SECRET_KEY, "--iam-dir", str(self.folder / "accounts"))
        back = ("posix", "--versioning-dir", str(self.folder / "versions"), str(self.folder / "objects"))
        return [str(self.program), *front, *keys, *back]

    async def answers(self) -> bool:
        """Whether its health page says so."""

        async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            writer.write(f"GET {HEALTH} HTTP/1.0\r\nHost: {LOOPBACK}\r\n\r\n".encode())
            return b" 200 " in await reader.readline()

        return await ask(self.port, exchange)

    def url(self) -> str:
        """For `open_objects`."""
        return f"s3://{BUCKET}/local?endpoint=http://{LOOPBACK}:{self.port}&region={REGION}"

    def keys(self) -> dict[str, str]:
        """The keys, where obstore looks for them."""
        return {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
