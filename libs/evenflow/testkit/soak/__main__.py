"""`python -m evenflow.testkit.soak`."""

from __future__ import annotations

import sys

from evenflow.testkit.soak.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
