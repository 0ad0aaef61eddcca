"""What a scenario's `policy` may say: the policy document's own table, its readers, defaults and readiness."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from evenflow.core.errors import FieldRefused
from evenflow.core.placement.policy import DEFAULT_POLICY
from evenflow.events.documents import fields, forms
from evenflow.events.documents.policy import SECTIONS, policy_document
from evenflow.events.documents.readiness import documented_fields
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.schema import Field, Form, Kind, Reading, Values

_DEFAULT: Final = policy_document(DEFAULT_POLICY)
_READINESS: Final = documented_fields()["policy"]


def _name_of(key: str, form: forms.Form) -> str:
    match form:
        case forms.Truth():
            return "true | false"
        case forms.Whole():
            return "whole number"
        case forms.Choice(words):
            return " | ".join(words)
        case forms.Decimal():
            return "seconds" if key.endswith("_s") else "number"
        case forms.Items(entry):
            return f"list of {_name_of(key, forms.form_of(entry))}"
        case forms.Either(choices):
            return " | ".join(_name_of(key, choice) for choice in choices)
        case forms.Fields():
            return key
        case _:
            return "text"


def _kind(key: str, reader: fields.Reader, default: Any) -> Kind:
    """The document's reader as a kind. A map is read over its default, key by key."""
    form = forms.form_of(reader)
    inner = form.readers if isinstance(form, forms.Fields) else None

    def read(value: object, path: str, _reading: Reading) -> Any:
        try:
            found = fields.parsed(reader, value)
        except FieldRefused as refusal:
            raise FieldRefused(fields.join(path, refusal.path), refusal.problem) from None
        return {**reader(default), **found} if inner is not None else found

    listed = None if inner is None else Form(f"policy {key}", key, _fields(inner, default, {}))
    return Kind(_name_of(key, form), read, listed)


def _fields(
    readers: Mapping[str, fields.Reader], defaults: Mapping[str, Any], readiness: Mapping[str, Any], section: str = ""
) -> tuple[Field, ...]:
    return tuple(
        Field(
            key,
            _kind(key, reader, defaults.get(key)),
            f"default {json.dumps(defaults.get(key))}",
            default=reader(defaults[key]) if key in defaults else None,
            status=readiness.get(f"{section}.{key}", "ready"),
        )
        for key, reader in readers.items()
    )


def _section(name: str, readers: Mapping[str, fields.Reader]) -> Field:
    form = Form(f"policy {name}", name, _fields(readers, _DEFAULT[name], _READINESS, name))
    return Field(name, form.partial(), f"section {name} of the policy document", default={})


POLICY: Final = Form(
    "policy",
    "a policy document, merged over the default",
    (
        Field("name", kinds.ID, "name of the document", default="default"),
        *(_section(name, readers) for name, readers in SECTIONS.items()),
    ),
)

#: Settings that are numbers of the policy as well: setting → section and key.
SAME_NUMBER: Final[dict[str, tuple[str, str]]] = {
    "silence_tolerance_s": ("silence", "tolerance_s"),
    "hold_off_s": ("silence", "hold_off_s"),
    "blind_max_s": ("silence", "blind_max_s"),
    "starvation_s": ("order", "starvation_s"),
    "ageing_s": ("order", "ageing_s"),
    "half_life_s": ("fairness", "half_life_s"),
    "minimum_run_s": ("preemption", "minimum_run_s"),
    "alert_after_s": ("checkpoint", "alert_after_s"),
    "start_failures_quarantine": ("retry", "start_failures_quarantine"),
}


def setting_of_policy(setting: str, about: str) -> Field:
    """A setting that is a number of the policy: kind and readiness are those of the policy's key."""
    section, key = SAME_NUMBER[setting]
    reader, written = SECTIONS[section][key], _DEFAULT[section][key]
    status = _READINESS[f"{section}.{key}"]
    return Field(setting, _kind(key, reader, written), about, default=reader(written), status=status)


def check_agreement(settings: Values, policy: Values) -> None:
    """Raise FieldRefused when a number stands in both `settings` and `policy` with different values."""
    for setting, (section, key) in SAME_NUMBER.items():
        written = policy.get(section, {}).get(key)
        if setting in settings and written is not None and settings[setting] != written:
            raise FieldRefused(f"settings.{setting}", f"policy.{section}.{key} says another value; write it once")
