"""Breaks R69: a name is tidied on its way, so that it does not come back as it was given."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from pydantic_core import to_json

from evenflow.placement.deciding import submissions
from evenflow.testkit.mutants.replacing import replaced

_specification = submissions._specification  # noqa: SLF001  the mutant works inside


def _tidied(raw: bytes, document: Any, task_id: str) -> bytes:
    if isinstance(document.get("name"), str):
        document = {**document, "name": document["name"].strip().lower()}
        raw = to_json(document)
    return _specification(raw, document, task_id)


def without_kept_document() -> AbstractContextManager[None]:
    """Documents that change on their way while entered."""
    return replaced(submissions, "_specification", _tidied)
