"""What simulated nodes and the gateway of `evenflow dev --data` keep beside the log, so that they survive the process.

A simulated process is plain data that nobody moves on, so it lives on while no program runs, as a real one would: the
next program finds it where it then stands. Only a boot of this computer empties the machines. The stores stay views:
nothing here is among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from evenflow.agent.clients.exchange import Exchange
from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.executors.machine import PlainMachine
from evenflow.agent.executors.process_table import boot_id
from evenflow.agent.executors.simulated_process import SimulatedProcess
from evenflow.agent.ports import Session
from evenflow.core.fleet.description import NodeDescription
from evenflow.events.contract import Document
from evenflow.platform.clock import Clock
from evenflow.platform.security.join_tokens import system_bytes

SECRET_BYTES: Final = 32
_PROCESS: Final = TypeAdapter(SimulatedProcess)


class KeptMachine(PlainMachine):
    """A simulated machine whose processes are files of a folder, one each."""

    def __init__(self, description: NodeDescription, clock: Clock, folder: Path, **more: Any) -> None:
        super().__init__(description, clock, **more)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._kernel_boot = boot_id()
        self._take_up()

    @property
    def boot(self) -> str:
        """This computer's boot."""
        return f"{self._kernel_boot}-{super().boot}"

    def keep(self, key: str) -> None:
        """Write the process, or remove what is left of one that went."""
        process, path = self._processes.get(key), self._folder / _file_name(key)
        if process is None:
            path.unlink(missing_ok=True)
        else:
            write_whole(path, _PROCESS.dump_json(process))

    def _take_up(self) -> None:
        """Find the processes of this boot; those of an earlier one are gone."""
        mark = self._folder / "boot.json"
        known = _read(mark)
        if known.get("boot") == self._kernel_boot:
            self._booted_ms = int(known.get("booted_ms", self._booted_ms))
            for path in sorted(self._folder.glob("run-*.json")):
                with contextlib.suppress(OSError, ValidationError):  # a file that can't be read is no process
                    process = _PROCESS.validate_json(path.read_bytes())
                    self._processes[process.key] = process
            return
        for path in self._folder.glob("run-*.json"):
            path.unlink(missing_ok=True)
        write_whole(mark, to_json({"boot": self._kernel_boot, "booted_ms": self._booted_ms}))


class KeptSession(HttpGateway):
    """A gateway client that goes on with the session of the program before, as a node that never stopped would.

    The session is given up as soon as the gateway refuses it, and not taken up when the node document changed.
    """

    def __init__(self, exchange: Exchange, path: Path, **more: Any) -> None:
        super().__init__(exchange, **more)
        self._file = path
        self._tried = False

    async def open_session(self, document: Document, *, booted_ms: int) -> Session:
        """The kept session once, then new ones."""
        kept = None if self._tried else self._kept(document)
        self._tried = True
        if kept is not None:
            self.open = kept
            return kept
        session = await super().open_session(document, booted_ms=booted_ms)
        body = {"session": session.id, "key": session.key.hex(), "heartbeat_ms": session.heartbeat_ms}
        write_whole(self._file, to_json({**body, "document": document}))
        return session

    def _kept(self, document: Document) -> Session | None:
        row = _read(self._file)
        if row.get("document") != from_json(to_json(document)):
            return None
        try:
            return Session(str(row["session"]), bytes.fromhex(row["key"]), int(row["heartbeat_ms"]))
        except (KeyError, ValueError, TypeError):
            return None


def kept_secret(path: Path) -> str:
    """The gateway's secret, made at the first start: a secret is no view, so it stays when the stores are deleted."""
    try:
        text = path.read_text(encoding="ascii").strip()
        if len(bytes.fromhex(text)) == SECRET_BYTES:
            return text
    except (OSError, ValueError):
        pass
    text = system_bytes(SECRET_BYTES).hex()
    write_whole(path, text.encode())
    return text


def write_whole(path: Path, data: bytes) -> None:
    """Write a file aside and rename it, readable by its owner alone: after a kill it is the old one or the new one."""
    draft = path.with_name(f"{path.name}.draft")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
    draft.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = from_json(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file_name(key: str) -> str:
    return f"run-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.json"
