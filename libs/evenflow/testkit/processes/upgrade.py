"""`make upgrade`: services of an earlier revision beside this tree's on a real Kafka, replaced one by one under load.

The earlier revision is unpacked from the repository's history and runs with this interpreter's packages. Each service's
new copy starts beside the old one, a task goes through everything with both there, the old one is stopped, and another
task goes through. The two with a door that others know are replaced in place. At the end every task has ended, nothing
was parked, and the audit proves from the log alone that nothing was lost.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final

import httpx

from evenflow.core.errors import Refused, Unavailable
from evenflow.hosting.registry import SERVICES
from evenflow.platform.clock import Clock
from evenflow.testkit.processes.faults.keeping import Kept
from evenflow.testkit.processes.faults.running import RECOVER_S, SETTLE_S, audited
from evenflow.testkit.processes.faults.world import World
from evenflow.testkit.processes.fleet import ServiceProcess

GIT: Final = shutil.which("git") or "git"
PARTS: Final = ("libs", "services", "schemas")
#: What another revision must agree about with this one, or convert.
SHARED_FORMS: Final = ("schemas/avro", "schemas/ids.json", "services/evenflow/placement/memory/rows.py")
#: Since this file stands in the tree, services and simulated nodes are processes that can be started like this.
STARTABLE: Final = "libs/evenflow/testkit/processes/nodes.py"
#: Whose addresses others know: of these one copy runs at a time.
IN_PLACE: Final = ("gateway", "console")
SHORTEST_S: Final = 20.0
LONGEST_S: Final = 100.0
Say = Callable[[str], None]
_UNKNOWN: Final = re.compile(r"(EVENFLOW_[A-Z0-9_]+).{0,3} is no setting")


@dataclass(frozen=True, slots=True)
class Replaced:
    """One service: milliseconds until a task went through everything with both copies there, and with the new alone."""

    service: str
    beside_ms: int | None
    after_ms: int


@dataclass
class Upgrade:
    """All of it, and what was left at the end."""

    revision: str
    tasks: int
    replaced: list[Replaced] = field(default_factory=list)
    parked: int = 0
    left: dict[str, int] = field(default_factory=dict)
    audit: str = ""
    audit_failed: bool = False

    @property
    def complaints(self) -> list[str]:
        """What must not be."""
        found = [f"{count} of {what} left at the end" for what, count in self.left.items() if count]
        found += [f"{self.parked} records were parked"] if self.parked else []
        found += ["the audit found something"] if self.audit_failed else []
        missing = [name for name in SERVICES if name not in [one.service for one in self.replaced]]
        return found + [f"{name} was not replaced" for name in missing]

    def rows(self) -> list[str]:
        """As a table."""
        rows = [f"{'service':<12} {'both there':>12} {'new alone':>12}   a task went through everything after"]
        for one in self.replaced:
            both = "in place" if one.beside_ms is None else f"{one.beside_ms} ms"
            rows.append(f"{one.service:<12} {both:>12} {one.after_ms:>9} ms")
        return [
            f"from {self.revision} to this tree, {self.tasks} tasks in flight", *rows,
            f"parked: {self.parked}; left at the end: {self.left}", self.audit,
        ]  # fmt: skip


def earlier_revision(root: Path) -> str:
    """The newest tag; without one, what stood before the last change of a form that releases share.

    Where that can't be started as processes, the commit since which it can. Raises Refused without history.
    """
    if tag := _git(root, "tag", "--list", "--sort=-creatordate", "v*").partition("\n")[0]:
        return tag
    changed = _git(root, "log", "-1", "--format=%H", "--", *SHARED_FORMS)
    before = f"{changed}^"
    if changed and _git(root, "ls-tree", "--name-only", before, STARTABLE):
        return _git(root, "rev-parse", "--short", before)
    return _git(root, "log", "--diff-filter=A", "--format=%h", "--", STARTABLE).rpartition("\n")[2]


def unpacked(root: Path, revision: str, into: Path) -> dict[str, str]:
    """A revision's tree in a folder; the environment by which its programs run. Raises Refused."""
    packed = subprocess.run(  # noqa: S603  git, with a revision that the caller names
        [GIT, "archive", "--format=tar", "--end-of-options", revision, *PARTS],
        cwd=root, capture_output=True, check=False,
    )  # fmt: skip
    if packed.returncode:
        raise Refused(f"REV={revision} can't be unpacked: {packed.stderr.decode('utf-8', 'replace').strip()[:300]}")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as tar:
        tar.extractall(into, filter="data")
    return {"PYTHONPATH": os.pathsep.join(str(into / name) for name in PARTS[:2])}


def known_to(tree: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The settings without those that came later: a release refuses what it does not know. Raises Unavailable."""
    told = dict(environment)
    for service in SERVICES:
        while True:
            command = [sys.executable, "-m", "evenflow.cli", "run", service, "--check-config"]
            whole = {**os.environ, **told, **tree}
            asked = subprocess.run(  # noqa: S603  the earlier tree's own command line
                command, env=whole, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            unknown = _UNKNOWN.search(asked.stderr)
            if asked.returncode == 0:
                break
            if unknown is None or unknown[1] not in told:
                raise Unavailable(f"the earlier {service} refuses its settings: {asked.stderr.strip()[-500:]}")
            del told[unknown[1]]
    return told


class Plain(Kept):
    """A service as `evenflow run` runs it, whose next copy may be of another release."""

    async def stop_now(self) -> None:
        """Stop the one that runs and start none."""
        await self.let_go()
        assert self.now is not None
        await self._processes.stop(self.now)

    async def start_other(self, environment: Mapping[str, str]) -> ServiceProcess:
        """Start the other release's copy with those settings; the one that ran before is given back as it is."""
        await self.let_go()
        old = self.now
        assert old is not None
        self._environment = {**environment, **self._environment}
        await self.start()
        await self.ready()
        return old

    async def _begun(self) -> ServiceProcess:
        return await self._processes.start(self.service, self._environment)


class Mixed(World):
    """The world of the faults, begun with an earlier revision's services and agents."""

    keeping = Plain

    def __init__(self, root: Path, folder: Path, clock: Clock, say: Say, tree: Mapping[str, str]) -> None:
        """`tree` is the earlier revision's."""
        super().__init__(root, folder, clock, say)
        self._root = root
        self._tree = tree
        self._whole: dict[str, str] = {}

    def told(self, environment: dict[str, str]) -> dict[str, str]:
        """What the earlier revision knows of it."""
        mine = os.pathsep.join(str(self._root / name) for name in PARTS[:2])
        self._whole = {**environment, "PYTHONPATH": mine}
        known = known_to(self._tree, environment)
        self.say(f"settings that the earlier revision does not know: {sorted(set(environment) - set(known)) or 'none'}")
        return {**known, **self._tree}

    async def replace(self, service: str) -> Replaced:
        """One service. Raises Unavailable or TimeoutError when nothing goes through any more."""
        kept = self.services[service]
        assert isinstance(kept, Plain)
        beside_ms = None
        if service in IN_PLACE:
            await kept.stop_now()
        old = await kept.start_other(self._whole)
        if service not in IN_PLACE:
            beside_ms = await self._goes_through()
        assert self.processes is not None
        if killed := await self.processes.stop(old):
            raise Unavailable(f"{killed[0]} did not stop in order: {old.running.said()}")
        return Replaced(service, beside_ms, await self._goes_through())

    async def replace_nodes(self) -> None:
        """The agents, on their disks."""
        assert self.nodes is not None
        assert self.processes is not None
        await self.processes.stop(self.nodes)
        self.processes.environment.update(self._whole)
        self.start_nodes()

    async def parked(self) -> int:
        """How many dead letters there are, at most 500."""
        async with httpx.AsyncClient(timeout=30) as client:
            return len((await client.get(f"{self.console}/api/v1/dlq", params={"limit": 500})).json()["items"])

    async def _goes_through(self) -> int:
        began_ms = self.clock.monotonic_ms()
        await self.probe(within_s=RECOVER_S)
        return self.clock.monotonic_ms() - began_ms


async def upgrade(revision: str, tasks: int, root: Path, folder: Path, clock: Clock, say: Say) -> Upgrade:
    """Do all of it. Raises Unavailable when the earlier world does not start or nothing goes through any more."""
    found = Upgrade(revision, tasks)
    tree = unpacked(root, revision, folder / "earlier")
    async with Mixed(root, folder, clock, say, tree) as world:
        await world.submit(tasks, shortest_s=SHORTEST_S, longest_s=LONGEST_S)
        await world.probe(within_s=RECOVER_S)
        say(f"{tasks} tasks in flight at {revision}")
        for service in SERVICES:
            one = await world.replace(service)
            found.replaced.append(one)
            say(f"{service}: {one}")
        await world.replace_nodes()
        await world.probe(within_s=RECOVER_S)
        found.left = await world.settled(within_s=SETTLE_S)
        found.parked = await world.parked()
        code, found.audit = await audited(root, world.brokers)
        found.audit_failed = code != 0
    return found


def _git(root: Path, *arguments: str) -> str:
    asked = subprocess.run(  # noqa: S603  git, with this module's own words
        [GIT, *arguments], cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if asked.returncode:
        raise Refused(f"the earlier revision can't be found ({asked.stderr.strip()[:200]}): name one with REV=")
    return asked.stdout.strip()
