"""The folder of one run: everything about a real process that must outlive the agent.

    started   <pid> <start ticks> <uptime>   written by the process itself, first of all
    exit      <code> <uptime>                written by it at the end
    seen      <run time in ms>               written by the agent now and then
    state.json                               what the agent noted: moments, known checkpoints, how far the log was sent
    work/ checkpoints/ resume/ output.log

The process is started through a few lines of shell, so that its start and its exit code are on the disk whether or not
an agent is there to see them.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from evenflow.agent.executors.process_table import MARK
from evenflow.agent.ports import Launch

SCRIPT: Final = """
run=$1; shift
trap : TERM INT HUP
cd "$run/work" || exit 126
up() { read -r now rest < /proc/uptime; echo "$now"; }
echo "$$ $(cut -d' ' -f22 /proc/$$/stat) $(up)" > "$run/started.new" && mv "$run/started.new" "$run/started"
"$@"
code=$?
echo "$code $(up)" > "$run/exit.new" && mv "$run/exit.new" "$run/exit"
exit $code
"""
INHERITED: Final = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Started:
    """What the process wrote at its start. `uptime_ms` counts from the boot."""

    pid: int
    ticks: int
    uptime_ms: int


@dataclass(frozen=True, slots=True)
class Exited:
    """What it wrote at its end."""

    code: int
    uptime_ms: int


@dataclass(slots=True)
class Noted:
    """The agent's notes. `sent` counts the output's bytes that were sent, `base` those that were cut off before."""

    boot: str = ""
    progress_ms: int = 0
    oom_kills: int = 0
    stop_asked: bool = False
    known: list[str] = field(default_factory=list)
    base: int = 0
    sent: int = 0


class RunFolder:
    """Reads and writes one run's files."""

    def __init__(self, root: Path, key: str) -> None:
        self.key = key
        self.path = root / "runs" / Path(*key.split("/"))

    @property
    def exists(self) -> bool:
        """Whether a start was noted here."""
        return (self.path / "state.json").exists()

    def make(self, noted: Noted) -> None:
        """Make the folder, with the notes last: without them no start was tried."""
        for name in ("work", "checkpoints"):
            (self.path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.note(noted)

    def note(self, noted: Noted) -> None:
        """Keep the agent's notes."""
        draft = self.path / "state.new"
        draft.write_text(json.dumps(asdict(noted)), encoding="utf-8")
        draft.replace(self.path / "state.json")

    def noted(self) -> Noted:
        """The agent's notes."""
        known = json.loads((self.path / "state.json").read_text(encoding="utf-8"))
        return Noted(**known)

    def started(self) -> Started | None:
        """What the process wrote at its start, if it got that far."""
        words = self._words("started")
        return Started(int(words[0]), int(words[1]), _ms(words[2])) if len(words) == 3 else None

    def exited(self) -> Exited | None:
        """What it wrote at its end; None also when it was killed before it could."""
        words = self._words("exit")
        return Exited(int(words[0]), _ms(words[1])) if len(words) == 2 else None

    def see(self, run_ms: int) -> None:
        """Note how long it has run, for the case that nobody sees it end."""
        (self.path / "seen").write_text(str(run_ms), encoding="ascii")

    def seen_ms(self) -> int:
        """The run time last noted."""
        words = self._words("seen")
        return int(words[0]) if len(words) == 1 and words[0].isdigit() else 0

    def remove(self) -> bool:
        """Remove everything; True when nothing is left."""
        shutil.rmtree(self.path, ignore_errors=True)
        return not self.path.exists()

    def command(self, launch: Launch) -> list[str]:
        """The command line: the shell lines, then the task's own."""
        return ["/bin/sh", "-c", SCRIPT, "evenflow-run", str(self.path), *launch.task.command]

    def spawn(self, launch: Launch) -> int:
        """Start the process as the leader of a session of its own; its pid. Raises OSError.

        Not asyncio's subprocess: its child watcher starts a thread, and its object must not outlive the process.
        """
        output = str(self.path / "output.log")
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        return os.posix_spawn(
            "/bin/sh", self.command(launch), self.environment(launch), file_actions=actions, setsid=True
        )

    def environment(self, launch: Launch) -> dict[str, str]:
        """A small environment: what a program needs of the machine's, the task's own, and what Evenflow tells it."""
        devices = ",".join(str(index) for index in launch.devices)
        told = {
            MARK: self.key,
            "EVENFLOW_TENANT": launch.tenant,
            "EVENFLOW_TASK": launch.task.id,
            "EVENFLOW_ATTEMPT": str(launch.attempt),
            "EVENFLOW_MEMBER": str(launch.member),
            "EVENFLOW_MEMBERS": str(launch.members),
            "EVENFLOW_DEVICES": devices,
            "CUDA_VISIBLE_DEVICES": devices,
            "EVENFLOW_CHECKPOINT_DIR": str(self.path / "checkpoints"),
        }
        if (self.path / "resume").is_dir():
            told["EVENFLOW_RESUME_DIR"] = str(self.path / "resume")
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        return {**kept, **dict(launch.task.env), **told}

    def _words(self, name: str) -> list[str]:
        try:
            return (self.path / name).read_text(encoding="ascii").split()
        except (OSError, UnicodeDecodeError):
            return []


def _ms(seconds: str) -> int:
    return round(float(seconds) * 1000)
