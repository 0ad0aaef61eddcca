"""What is ready and what is planned, generated from the registries: `evenflow scenario verbs`."""

from __future__ import annotations

from typing import Any

from evenflow.sim.expectations import FORMS
from evenflow.sim.scenario.file import FILE
from evenflow.sim.scenario.policy import POLICY
from evenflow.sim.scenario.schema import rows
from evenflow.sim.scenario.settings import SETTINGS
from evenflow.sim.verbs import VERBS
from evenflow.sim.verbs.submit import PLANNED_TASK_FIELDS


def catalogue() -> dict[str, Any]:
    """Every field, verb, argument, setting, policy key and expectation form with its status."""
    apart = ("settings", "policy")
    return {
        "fields": [row for row in rows(FILE) if row["field"].split(".")[0] not in apart],
        "task_fields": [
            {"field": name, "status": "planned", "default": default} for name, default in PLANNED_TASK_FIELDS.items()
        ]
        + [{"field": "members[]", "status": "planned", "default": None}],
        "verbs": [
            {
                "verb": verb.name,
                "status": verb.status,
                "about": verb.about,
                "arguments": [] if verb.arguments.form is None else rows(verb.arguments.form),
            }
            for verb in VERBS.values()
        ],
        "settings": rows(SETTINGS),
        "policy": rows(POLICY),
        "expectations": [
            {"form": form.name, "status": form.status, "about": form.about, "fields": rows(form.form)}
            for form in FORMS.values()
        ],
    }
