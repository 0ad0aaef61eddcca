"""Breaks R06: a quarter of a device is cut to no device on its way to the engine."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from evenflow.core.demand.task import Task
from evenflow.core.units import MILLI
from evenflow.events.documents.task_specification import parse_task
from evenflow.placement.deciding import submissions
from evenflow.testkit.mutants.replacing import replaced


def _truncating(document: object, **options: Any) -> Task:
    task = parse_task(document, **options)
    devices = task.resources.devices
    cut = replace(devices, share_milli=devices.share_milli // MILLI * MILLI)
    return replace(task, resources=replace(task.resources, devices=cut))


def without_kept_share() -> AbstractContextManager[None]:
    """Truncated shares while entered."""
    return replaced(submissions, "parse_task", _truncating)
