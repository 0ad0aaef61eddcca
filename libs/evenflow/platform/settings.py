"""Settings of a service: defaults, then a file, then the environment, then overrides; frozen and bounded.

    class PlacementSettings(Settings):
        round_period_ms: int = Field(default=20, ge=1, le=10_000)
        database_password: SecretStr = SecretStr("")

    EVENFLOW_PLACEMENT_ROUND_PERIOD_MS=50           in the environment; lists and tables as JSON
    EVENFLOW_PLACEMENT_DATABASE_PASSWORD=…          a secret, from the environment
    EVENFLOW_PLACEMENT_DATABASE_PASSWORD_FILE=/run/…   or from a file of its own
    round_period_ms: 50                             in a YAML or TOML file

Every number has limits: a class without them can't be defined. A secret never stands in a settings file (its path does,
as `database_password_file`) and is never printed. An error names field, source and what is allowed.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from evenflow.core.errors import FieldRefused

FILE_BYTES_MAX: Final = 2**20
SECRET_BYTES_MAX: Final = 65_536

#: For a task's own process, and for the command that joins a machine, though they look like settings of a service.
FOR_OTHERS: Final = ("EVENFLOW_CHECKPOINT_DIR", "EVENFLOW_RESUME_DIR", "EVENFLOW_GATEWAY_URL")

S = TypeVar("S", bound="Settings")


class Settings(BaseModel):
    """Base of every service's settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, validate_default=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_keywords: Any) -> None:
        """Refuse a class with an unbounded number: TypeError names the field."""
        for name, field in cls.model_fields.items():
            if _holds_number(field.annotation) and not _is_bounded(field):
                raise TypeError(f"{cls.__name__}.{name} needs limits, as Field(default=10, ge=1, le=100)")

    def with_changes(self, **changes: Any) -> Self:
        """A checked copy with other values; FieldRefused as when loading."""
        return _validate(type(self), {**{name: getattr(self, name) for name in type(self).model_fields}, **changes}, {})


def load_settings(
    settings: type[S],
    service: str,
    *,
    file: Path | None = None,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
) -> S:
    """Settings of `service` (link-probe reads EVENFLOW_LINK_PROBE_…). Raises FieldRefused.

    A file may hold the settings of several services under their names, or those of one service alone.
    """
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for found in (
        _from_file(settings, service, file) if file is not None else {},
        _from_environment(settings, service, environment),
        {name: (value, "an override") for name, value in (overrides or {}).items()},
    ):
        for name, (value, source) in found.items():
            values[name], sources[name] = value, source
    return _validate(settings, values, sources)


def variable(service: str, field: str) -> str:
    """The environment variable of a field."""
    return f"EVENFLOW_{service}_{field}".replace("-", "_").upper()


def shown(settings: Settings) -> dict[str, Any]:
    """Settings for people and logs, secrets as stars."""
    return settings.model_dump(mode="json")


_Found = dict[str, tuple[Any, str]]


def _from_file(settings: type[Settings], service: str, path: Path) -> _Found:
    fields = settings.model_fields
    table = read_table(path)
    if table and not any(name in fields for name in table) and all(isinstance(part, dict) for part in table.values()):
        table = table.get(service, {})
    secret_files = {f"{name}_file": name for name, field in fields.items() if _is_secret(field)}
    found: _Found = {}
    for name, value in table.items():
        if f"{name}_file" in secret_files:
            way_out = f"write {name}_file: PATH, or set {variable(service, name)}"
            raise FieldRefused(name, f"is a secret and may not stand in {path}; {way_out}")
        if name in secret_files:
            secret = secret_files[name]
            found[secret] = (_read_secret(secret, Path(str(value))), f"the file that {path} names")
        else:
            found[name] = (value, str(path))
    return found


def _from_environment(settings: type[Settings], service: str, environment: Mapping[str, str]) -> _Found:
    prefix = variable(service, "")
    known = {variable(service, name): name for name in settings.model_fields}
    found: _Found = {}
    for key in sorted(environment):
        if not key.startswith(prefix) or key in FOR_OTHERS:
            continue
        name = known.get(key)
        if name is not None:
            field = settings.model_fields[name]
            found[name] = (_parsed(environment[key], field), key)
            continue
        name = known.get(key.removesuffix("_FILE"))
        if name is None or not _is_secret(settings.model_fields[name]):
            near = difflib.get_close_matches(key, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise FieldRefused(key, f"is no setting of {service}{hint}")
        if name not in found:
            found[name] = (_read_secret(name, Path(environment[key])), key)
    return found


def _parsed(text: str, field: FieldInfo) -> Any:
    """Lists and tables are JSON; all else is text that the model converts."""
    if text[:1] in "[{" and text and not _is_text(field):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _read_secret(name: str, path: Path) -> str:
    try:
        raw = path.read_bytes()
        if len(raw) > SECRET_BYTES_MAX:
            raise FieldRefused(name, f"its file {path} is larger than {SECRET_BYTES_MAX} bytes")
        return raw.decode().rstrip("\r\n")
    except OSError as error:
        raise FieldRefused(name, f"can't read its file {path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FieldRefused(name, f"its file {path} is not UTF-8 text") from None


def read_table(path: Path) -> dict[str, Any]:
    """A YAML or TOML file as a table. FieldRefused for another suffix, a duplicate key, an anchor or bad syntax."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise FieldRefused(str(path), f"can't be read: {error.strerror}") from error
    if len(raw) > FILE_BYTES_MAX:
        raise FieldRefused(str(path), f"is larger than {FILE_BYTES_MAX} bytes")
    try:
        if path.suffix == ".toml":
            table: Any = tomllib.loads(raw.decode())
        elif path.suffix in (".yaml", ".yml"):
            table = yaml.load(raw.decode(), _StrictLoader)  # noqa: S506  derived from SafeLoader
        else:
            raise FieldRefused(str(path), "must end in .yaml, .yml or .toml")
    except (yaml.YAMLError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FieldRefused(str(path), f"can't be read: {_without_its_lines(error)}") from None
    if table is None:
        return {}
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
        raise FieldRefused(str(path), "must hold fields by name")
    return table


def _without_its_lines(error: Exception) -> str:
    """What is wrong with a file and where; never a line of it, since somebody may have written a secret there."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        return f"{error.problem or error.context}{where}"
    if isinstance(error, UnicodeDecodeError):
        return "is not UTF-8 text"
    return " ".join(str(error).split())[:300]


class _StrictLoader(yaml.SafeLoader):
    """YAML without the parts by which one file can mean two things."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]  # the library's stub
        if getattr(event, "anchor", None) is not None:  # an alias names its anchor too
            raise yaml.YAMLError("anchors and aliases are not read")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002  theirs
        seen: list[Any] = []
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.append(key)
        return super().construct_mapping(node, deep)


def _validate(settings: type[S], values: Mapping[str, Any], sources: Mapping[str, str]) -> S:
    try:
        return settings.model_validate(dict(values))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        first = problems[0]
        path = ".".join(str(part) for part in first["loc"]) or settings.__name__
        name = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"][:1].lower() + first["msg"][1:]
        if first["type"] == "extra_forbidden":
            near = difflib.get_close_matches(name, settings.model_fields, 1)
            message = f"is no setting{f'; did you mean {near[0]}?' if near else ''}"
        where = f" (from {sources[name]})" if name in sources else ""
        more = f"; {len(problems) - 1} more" if len(problems) > 1 else ""
        raise FieldRefused(path, f"{message}{where}{more}") from None


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _parts(part)


def _holds_number(annotation: Any) -> bool:
    return any(part in (int, float) for part in _parts(annotation))


def _is_bounded(field: FieldInfo) -> bool:
    """A plain number carries its own limits; inside a container they stand in the part's annotation."""
    marks = [*field.metadata]
    for part in _parts(field.annotation):
        marks.extend(getattr(part, "metadata", ()) if not isinstance(part, type) else ())
        for extra in getattr(part, "__metadata__", ()):
            marks.extend(getattr(extra, "metadata", [extra]))
    low = any(getattr(mark, name, None) is not None for mark in marks for name in ("ge", "gt"))
    high = any(getattr(mark, name, None) is not None for mark in marks for name in ("le", "lt"))
    return low and high


def _is_secret(field: FieldInfo) -> bool:
    return any(part is SecretStr for part in _parts(field.annotation))


def _is_text(field: FieldInfo) -> bool:
    return field.annotation in (str, SecretStr)
