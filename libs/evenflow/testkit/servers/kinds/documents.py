"""The stand-in for MongoDB: SecantusDB, a single-node server that speaks MongoDB's protocol over WiredTiger.

It is not MongoDB. No mongod is to be had from the package registries that a build may use, so this one runs where no
other is named; MONGODB_URI runs the same suite on a real replica set. It is a process of its own, never imported.
The Rust server is built with cargo; where that can't be, its author's Python server of the same store is taken, which
is slower. Both flush on every commit: without that acknowledged writes are lost when it is killed.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
from pathlib import Path
from typing import Final

from evenflow.core.errors import Refused, Unavailable
from evenflow.testkit.servers.artifacts import Artifact, Say, digest_of, obtain, run
from evenflow.testkit.servers.kinds.server import Server, ask
from evenflow.testkit.servers.process import LOOPBACK

CRATE: Final = "secantus-mdb"
#: A quarter less time to build than with the crate's own release profile; speed is not what it is here for.
QUICK_BUILD: Final = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
}
OP_MSG: Final = 2013


class SecantusBinary(Artifact):
    """The Rust server, built from its crate; the crate's own lock pins the rest by checksum."""

    name = "documents"
    material = "local/documents"
    programs = ("cargo", "cmake", "cc", "c++")
    install = "install a Rust toolchain, cmake and a C++ compiler"

    def build(self, into: Path, log: Path) -> None:
        """Build, then hold the crate that was built to its checksum before anything of it runs."""
        digest, file_name = (self.pins / "crate.sha256").read_text(encoding="ascii").split()
        version = file_name.removeprefix(f"{CRATE}-").removesuffix(".crate")
        target = into / "target"
        # The crate asks for a newer compiler than it needs.
        options = ("--version", version, "--locked", "--ignore-rust-version", "--root", str(into))
        run(
            ["cargo", "install", CRATE, *options, "--target-dir", str(target)],
            log,
            folder=into,
            environment=QUICK_BUILD,
        )
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        found = [digest_of(path) for path in home.glob(f"registry/cache/*/{file_name}")]
        if found != [digest]:
            raise Refused(f"{file_name} was fetched with checksums {found or 'none'}, {digest} is pinned")
        _remove(target)


class SecantusWheel(Artifact):
    """The Python server, in an environment of its own."""

    name = "documents-wheel"
    material = "local/documents"
    programs = ()
    install = ""

    def build(self, into: Path, log: Path) -> None:
        """Install by hash."""
        run([sys.executable, "-m", "venv", str(into)], log, folder=into)
        pins = ("--require-hashes", "-r", str(self.pins / "requirements.txt"))
        run([str(into / "bin" / "python"), "-m", "pip", "install", "--quiet", *pins], log, folder=into)


class DocumentServer(Server):
    """One server that the driver takes for a standalone with sessions and transactions."""

    kind = "documents"
    name = "the document stand-in (SecantusDB, not MongoDB)"
    program: tuple[str, ...]

    def obtain(self, say: Say) -> None:
        """The built server, or the slower wheel with a word on why."""
        try:
            built = obtain(SecantusBinary(self.root), self.cache, say)
            cache = ("--cache-size", "256M", "--log-file-max", "16MB")
            self.program = (str(built / "bin" / "secantusd-rs"), *cache)
        except Unavailable as error:
            say(f"{error}\nthe stand-in's Python server is taken in its place: the same store, slower")
            wheel = obtain(SecantusWheel(self.root), self.cache, say)
            # Its entry script names the folder in which it was built; the module does not.
            self.program = (str(wheel / "bin" / "python"), "-m", "secantus")

    def prepare(self) -> None:
        """The store's folder."""
        (self.folder / "data").mkdir(exist_ok=True)

    def command(self, node: int = 0) -> list[str]:
        """On loopback, flushing on every commit, with the fail points that tests may use."""
        place = ("--host", LOOPBACK, "--port", str(self.port), "--storage-path", str(self.folder / "data"))
        return [*self.program, *place, "--sync-on-commit", "--enable-test-commands", "--log-level", "WARNING"]

    async def answers(self) -> bool:
        """Whether it answers a hello."""

        async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
            fields = b"\x10hello\x00" + struct.pack("<i", 1) + b"\x02$db\x00" + struct.pack("<i", 6) + b"admin\x00\x00"
            body = struct.pack("<ib", 0, 0) + struct.pack("<i", len(fields) + 4) + fields
            writer.write(struct.pack("<iiii", len(body) + 16, 1, 0, OP_MSG) + body)
            length, _, _, kind = struct.unpack("<iiii", await reader.readexactly(16))
            return kind == OP_MSG and b"isWritablePrimary" in await reader.readexactly(length - 16)

        return await ask(self.port, exchange)

    def url(self) -> str:
        """For `open_documents`."""
        return f"mongodb://{LOOPBACK}:{self.port}/evenflow?retryWrites=true"


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
