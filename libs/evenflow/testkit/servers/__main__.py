"""`python -m evenflow.testkit.servers`."""

from __future__ import annotations

import sys

from evenflow.testkit.servers.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
