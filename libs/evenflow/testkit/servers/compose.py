"""The compose file held to the Compose specification by its own library, without an engine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from evenflow.core.errors import Refused
from evenflow.testkit.servers.artifacts import GoProgram, Say, obtain

CHECK_S_MAX: Final = 60


class ComposeCheck(GoProgram):
    """The specification's reference reader as a program."""

    name = "compose"
    material = "docker/compose"
    package = "github.com/compose-spec/compose-go/v2/cmd"
    program = "compose-check"


def check_compose(file: Path, root: Path, cache: Path, say: Say) -> None:
    """Read the file by the specification's schema. Raises Refused with the reader's own words."""
    program = obtain(ComposeCheck(root), cache, say) / ComposeCheck.program
    ended = subprocess.run(  # noqa: S603  the program built above
        [program, file], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_S_MAX, check=False,
        cwd=root, env={"PATH": "", "HOME": str(root)},
    )  # fmt: skip
    said = (ended.stderr or ended.stdout).strip()
    if ended.returncode or "services:" not in ended.stdout:
        raise Refused(f"{file.name} is no compose file: {said[-500:]}")
