"""`python -m evenflow.testkit.processes`: see `command`."""

from __future__ import annotations

import sys

from evenflow.testkit.processes.command import main

sys.exit(main(sys.argv[1:]))
