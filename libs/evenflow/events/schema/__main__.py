"""`python -m evenflow.events.schema write|check ROOT`: exit code 0 in order, 1 refused or drifted, 2 used wrongly."""

from __future__ import annotations

import sys
from pathlib import Path

from evenflow.core.errors import Refused
from evenflow.events.schema.files import check, write


def run(arguments: list[str]) -> int:
    """Do what the arguments say, print one line per path or problem."""
    if len(arguments) != 2 or arguments[0] not in ("write", "check") or not Path(arguments[1]).is_dir():
        sys.stderr.write("use: python -m evenflow.events.schema write|check FOLDER_OF_THE_REPOSITORY\n")
        return 2
    action, root = arguments[0], Path(arguments[1])
    if action == "check":
        problems = check(root)
        sys.stderr.writelines(f"{problem}\n" for problem in problems)
        return 1 if problems else 0
    try:
        sys.stdout.writelines(f"{path}\n" for path in write(root))
    except Refused as refusal:
        sys.stderr.write(f"{refusal.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
