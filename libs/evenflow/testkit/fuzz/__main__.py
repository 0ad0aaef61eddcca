"""`python -m evenflow.testkit.fuzz`."""

from __future__ import annotations

import sys

from evenflow.testkit.fuzz.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
