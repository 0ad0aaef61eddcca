"""`python -m evenflow.cli`: the command where its script is not installed."""

from evenflow.cli.main import run

run()
