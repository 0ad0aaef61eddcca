"""How a field of the scenario format is described: its kind, its default, and whether it is ready or planned.

One description serves three ends: the strict parser, the exit codes (an unknown field is wrong, a planned one given
another value than its default is planned), and the printed catalogue. Nothing is accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evenflow.core.errors import FieldRefused

Status = Literal["ready", "planned"]
Values = dict[str, Any]
Check = Callable[[Values, str], None]


class Reading:
    """What is noted while one file is read: the planned features that it really uses."""

    def __init__(self) -> None:
        self.planned: list[str] = []

    def uses_planned(self, path: str, status: Status, value: object, default: object) -> None:
        """Note a planned field whose value is not its default."""
        if status == "planned" and value != default:
            self.planned.append(path)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a value is read: `read(value, path, reading)` returns it in the product's units or raises FieldRefused."""

    name: str
    read: Callable[[object, str, Reading], Any]
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form. `default` is the parsed value of an absent field."""

    name: str
    kind: Kind
    about: str
    default: Any = None
    required: bool = False
    status: Status = "ready"


@dataclass(frozen=True, slots=True)
class Form:
    """A mapping with known fields. Exactly one of `one_of` must be given, when there are any."""

    name: str
    about: str
    fields: tuple[Field, ...]
    one_of: tuple[str, ...] = ()
    status: Status = "ready"
    check: Check | None = None
    _by_name: dict[str, Field] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {entry.name: entry for entry in self.fields})

    def read(self, value: object, path: str, reading: Reading, *, given_only: bool = False) -> Values:
        """The form's values by field name, defaults filled in unless `given_only`.

        Raises FieldRefused at the first unknown, missing or wrong field, in the order of the file.
        """
        if not isinstance(value, Mapping):
            raise FieldRefused(path, f"must be a mapping with fields of {self.name}")
        values: Values = {}
        for name, raw in value.items():
            entry = self._by_name.get(str(name))
            where = f"{path}.{name}" if path else str(name)
            if entry is None:
                raise FieldRefused(where, f"unknown field; {self.name} knows {', '.join(self._by_name)}")
            if raw is None:
                raise FieldRefused(where, "must not be null: leave the field out instead")
            values[entry.name] = entry.kind.read(raw, where, reading)
            reading.uses_planned(where, entry.status, values[entry.name], entry.default)
        self._complete(values, path)
        if not given_only:
            values = {entry.name: values.get(entry.name, entry.default) for entry in self.fields}
        return values

    def _complete(self, values: Values, path: str) -> None:
        for entry in self.fields:
            if entry.required and entry.name not in values:
                raise FieldRefused(f"{path}.{entry.name}" if path else entry.name, "is required")
        if self.one_of:
            given = [name for name in self.one_of if name in values]
            if len(given) != 1:
                found = "none is given" if not given else f"{' and '.join(given)} are given"
                raise FieldRefused(path, f"needs exactly one of {', '.join(self.one_of)}; {found}")
        if self.check is not None:
            self.check(values, path)

    def kind(self) -> Kind:
        """The form as the kind of a field."""
        return Kind(self.name, self.read, self)

    def partial(self) -> Kind:
        """The form as a kind that keeps only the fields which the file gives."""

        def read(value: object, path: str, reading: Reading) -> Values:
            return self.read(value, path, reading, given_only=True)

        return Kind(self.name, read, self)


#: Where a list of one form stands in a path of the catalogue: `nodes[].rack`.
LIST_MARK: Final = "[]"


def rows(form: Form, prefix: str = "") -> list[dict[str, Any]]:
    """The form's fields and those inside them, flat, for the catalogue."""
    found: list[dict[str, Any]] = []
    for entry in form.fields:
        path = f"{prefix}{entry.name}"
        found.append(
            {
                "field": path,
                "kind": entry.kind.name,
                "status": "planned" if form.status == "planned" else entry.status,
                "required": entry.required,
                "about": entry.about,
            }
        )
        if entry.kind.form is not None:
            mark = LIST_MARK if entry.kind.name.startswith("list of ") else ""
            inner = entry.kind.form
            if entry.status == "planned" or form.status == "planned":
                inner = Form(inner.name, inner.about, inner.fields, inner.one_of, "planned", inner.check)
            found.extend(rows(inner, f"{path}{mark}."))
    return found
