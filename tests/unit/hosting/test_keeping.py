"""What simulated nodes keep beside the log: processes go on in the next program, sessions and secrets are the same."""

from __future__ import annotations

import json
import stat
from typing import Any

from evenflow.agent.clients.exchange import HttpRequest, HttpResponse
from evenflow.agent.executors.simulated import SimulatedExecutor
from evenflow.agent.ports import Ended, Launch, Ready, Saved
from evenflow.core.demand.task import CheckpointWish, SimulatedRun, Task
from evenflow.events.documents.node import parse_node
from evenflow.hosting.development import keeping
from evenflow.hosting.development.keeping import KeptMachine, KeptSession, kept_secret
from evenflow.platform.security.identity import key_from_seed

NODE = parse_node({"id": "n1", "site": "east"})


class Hands:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at_ms = 1_000

    def now_ms(self) -> int:
        return self.at_ms

    monotonic_ms = now_ms


def _launch(**more: Any) -> Launch:
    task = Task("default", "t1", run=SimulatedRun(work_ms=10_000), checkpoint=CheckpointWish(4_000, 1_000), **more)
    return Launch("default/t1/1/0", "default", task, 1, 0, 1, (), 1000, 2**30)


async def test_a_simulated_process_goes_on_in_the_next_program(tmp_path):
    """Proves that a start is found again, that time went on for it meanwhile, and that its pause was not forgotten."""
    clock = Hands()
    first = await SimulatedExecutor(KeptMachine(NODE, clock, tmp_path)).start(_launch())
    clock.at_ms = 1_500
    assert isinstance(await first.next(), Ready)
    clock.at_ms = 5_500
    assert isinstance(await first.next(), Saved)

    clock.at_ms = 60_000
    found = await SimulatedExecutor(KeptMachine(NODE, clock, tmp_path)).find(_launch())
    assert isinstance(await found.next(), Ready)
    ended = await found.next()
    assert isinstance(ended, Ended)
    assert (ended.ended_as, ended.at_ms, ended.run_ms) == ("succeeded", 12_500, 11_000)


async def test_what_was_reclaimed_is_not_there_any_more(tmp_path):
    """Proves that a cleaned place stays clean, and that a file that is no process is none."""
    clock = Hands()
    executor = SimulatedExecutor(KeptMachine(NODE, clock, tmp_path))
    run = await executor.start(_launch())
    await run.stop(0, save=False)
    assert len(list(tmp_path.glob("run-*.json"))) == 1
    assert await executor.reclaim(_launch())
    (tmp_path / "run-ff.json").write_text('{"key": ')
    machine = KeptMachine(NODE, clock, tmp_path)
    assert machine.processes() == {}
    assert await SimulatedExecutor(machine).find(_launch()) is None


async def test_a_boot_of_the_computer_empties_its_machines(tmp_path, monkeypatch):
    """Proves that nothing is taken for living that ran before a boot, and that agents can tell."""
    clock = Hands()
    before = KeptMachine(NODE, clock, tmp_path)
    await SimulatedExecutor(before).start(_launch())
    assert KeptMachine(NODE, clock, tmp_path).boot == before.boot
    monkeypatch.setattr(keeping, "boot_id", lambda: "another")
    clock.at_ms = 9_000
    after = KeptMachine(NODE, clock, tmp_path)
    assert (after.processes(), after.booted_ms) == ({}, 9_000)
    assert after.boot != before.boot


async def test_a_session_is_taken_up_once_and_only_for_the_same_document(tmp_path):
    """Proves that the next program goes on in the session, and opens another one when that is refused."""
    opened: list[str] = []

    async def exchange(request: HttpRequest, *, timeout_ms: int) -> HttpResponse:
        opened.append(request.target)
        told = {"session": f"s{len(opened)}", "session_key": "ab" * 32, "heartbeat_ms": 5_000}
        return HttpResponse(201, json.dumps(told).encode())

    def door() -> KeptSession:
        return KeptSession(exchange, tmp_path / "session.json", node="n1", key=key_from_seed("n1"))

    document = {"id": "n1", "site": "east"}
    assert (await door().open_session(document, booted_ms=1)).id == "s1"
    again = door()
    assert (await again.open_session(document, booted_ms=1)).id == "s1"
    assert again.open is not None
    assert (await again.open_session(document, booted_ms=1)).id == "s2"
    assert (await door().open_session({**document, "cpu": 8}, booted_ms=1)).id == "s3"


def test_a_secret_is_made_once_and_readable_by_its_owner_alone(tmp_path):
    """Proves that session keys stay right when the documents are deleted, and that a broken file is replaced."""
    path = tmp_path / "gateway.secret"
    secret = kept_secret(path)
    assert (len(secret), kept_secret(path)) == (64, secret)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("no secret")
    assert kept_secret(path) != "no secret"
