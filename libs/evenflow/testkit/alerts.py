"""Prometheus' files held to Prometheus' own tool: its configuration, the alert rules, and the tests of the rules."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from evenflow.core.errors import EvenflowError, Refused
from evenflow.testkit.servers.artifacts import GoProgram, Say, obtain
from evenflow.testkit.servers.local import cache_folder

FOLDER: Final = Path("deploy", "prometheus")
CHECK_S_MAX: Final = 120
CHECKS: Final = (
    ("check", "config", "prometheus.yml"),
    ("check", "rules", "--lint-fatal", "alerts.yml"),
    ("test", "rules", "alerts.test.yml"),
)


class Promtool(GoProgram):
    """The tool from Prometheus' module, without the clouds that it can look for services in."""

    name = "promtool"
    material = "local/promtool"
    package = "github.com/prometheus/prometheus/cmd/promtool"
    program = "promtool"
    tags = ("remove_all_sd", "enable_dns_sd")


def promtool(root: Path, say: Say) -> Path:
    """The built tool. Raises Unavailable when it can't be built."""
    return obtain(Promtool(root), cache_folder(root), say) / Promtool.program


def check_alerts(program: Path, folder: Path) -> None:
    """Run all checks on the files of a folder. Raises Refused with the tool's own words."""
    for check in CHECKS:
        ended = subprocess.run(  # noqa: S603  the program built above
            [program, *check], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=CHECK_S_MAX,
            check=False, cwd=folder, env={"PATH": "", "HOME": str(folder)},
        )  # fmt: skip
        if ended.returncode:
            raise Refused(f"promtool {' '.join(check)}:\n{(ended.stdout + ended.stderr).strip()[-3000:]}")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def main() -> int:
    """Check this tree's files."""
    root = Path.cwd()
    try:
        check_alerts(promtool(root, _say), root / FOLDER)
    except EvenflowError as error:
        _say(str(error))
        return 1
    _say("Prometheus' configuration, the alert rules and their tests are right.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
