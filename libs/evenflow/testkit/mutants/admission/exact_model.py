"""Breaks R15: a model's name is matched by its beginning, so that another model is good enough."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from evenflow.core.demand.task import Task
from evenflow.events.documents.task_specification import parse_task
from evenflow.placement.deciding import submissions
from evenflow.testkit.mutants.replacing import replaced

#: Models of scenarios and drawn worlds, and what someone may have written for them.
_TAKEN_FOR: Final = {"a100": "a100-80g", "mi355": "mi355x"}


def _by_beginning(document: object, **options: Any) -> Task:
    task = parse_task(document, **options)
    devices = task.resources.devices
    models = tuple(_TAKEN_FOR.get(name, name) for name in devices.models)
    return replace(task, resources=replace(task.resources, devices=replace(devices, models=models)))


def without_exact_model() -> AbstractContextManager[None]:
    """Models told apart by their beginnings alone while entered."""
    return replaced(submissions, "parse_task", _by_beginning)
