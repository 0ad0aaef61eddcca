"""Breaks R22 and rule 4: a submission that is read again is taken for a new task, and begins its life once more."""

from __future__ import annotations

from contextlib import AbstractContextManager

from evenflow.placement.deciding import submissions
from evenflow.placement.deciding.draft import Draft
from evenflow.platform.broker.codec import Received
from evenflow.testkit.mutants.replacing import replaced

_known = submissions._known  # noqa: SLF001  the mutant works inside


def _forgetful(draft: Draft, received: Received, tenant: str, name: str, digest: str) -> bool:
    known = draft.task(f"{tenant}/{name}")
    if known is not None and known.digest == digest:
        return False
    return _known(draft, received, tenant, name, digest)


def without_inbox() -> AbstractContextManager[None]:
    """Repeated submissions count anew while entered."""
    return replaced(submissions, "_known", _forgetful)
