"""Switches that break one mechanism each: a check that stays green under its mutant proves nothing.

One file per mutant, grouped by where it sits; `MUTANTS` lists them with what must fail under each.
"""

from evenflow.testkit.mutants.registry import MUTANTS

__all__ = ["MUTANTS"]
