"""The Avro schemas that records were ever written with, each under the id that frames its records.

`schemas/ids.json` maps file → id. A file is one wire form: `avro/<type>.v<major>.r<revision>.avsc`. Ids are never given
again and a wire form never changes, because records on the log and in archives name them for ever.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastavro.schema import SchemaParseException, UnknownType, to_parsing_canonical_form

from evenflow.core.errors import FieldRefused, Refused

IDS: Final = "ids.json"
FOLDER: Final = "avro"
ID_MAX: Final = 2**31 - 1
_NAME = re.compile(r"avro/(?P<type>[a-z.-]+)\.v(?P<major>[1-9][0-9]{0,5})\.r(?P<revision>[1-9][0-9]{0,5})\.avsc\Z")


@dataclass(frozen=True, slots=True)
class WireForm:
    """One released Avro schema of an event type: `file` relative to the schemas folder."""

    id: int
    event_type: str
    major: int
    revision: int
    file: str
    schema: dict[str, Any]


def file_of(event_type: str, major: int, revision: int) -> str:
    """The file of a wire form, relative to the schemas folder."""
    return f"{FOLDER}/{event_type}.v{major}.r{revision}.avsc"


class Released:
    """The wire forms of a schemas folder, read once."""

    def __init__(self, folder: Path) -> None:
        """Read `folder`; one without ids.json has released nothing. Raises Refused for what is not in order."""
        self._by_id: dict[int, WireForm] = {}
        self._newest_first: dict[tuple[str, int], list[WireForm]] = {}
        path = folder / IDS
        ids = _read(path) if path.exists() else {}
        for file in sorted(ids):
            form = _form(folder, file, ids[file])
            if form.id in self._by_id:
                raise Refused(f"{path}: the id {form.id} stands twice; an id names one wire form for ever")
            self._by_id[form.id] = form
            self._newest_first.setdefault((form.event_type, form.major), []).append(form)
        for forms in self._newest_first.values():
            forms.sort(key=lambda form: -form.revision)
            if [form.revision for form in forms] != list(range(len(forms), 0, -1)):
                raise Refused(f"{path}: {forms[0].event_type} lacks a revision below {forms[0].revision}")

    def by_id(self, schema_id: int) -> WireForm:
        """The wire form of an id. Raises FieldRefused for an unknown one."""
        form = self._by_id.get(schema_id)
        if form is None:
            raise FieldRefused("value", f"names the schema {schema_id}, which this reader does not have")
        return form

    def revisions(self, event_type: str, major: int) -> list[WireForm]:
        """Every wire form of one major version, newest first."""
        return self._newest_first.get((event_type, major), [])

    def all(self) -> list[WireForm]:
        """Every wire form, by id."""
        return [self._by_id[key] for key in sorted(self._by_id)]


def schemas_folder() -> Path:
    """Where this installation keeps its released schemas: inside the package, or in the checkout it runs from."""
    packaged = Path(__file__).parent / "released"
    return packaged if packaged.is_dir() else Path(__file__).parents[4] / "schemas"


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Refused(f"{path}: is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise Refused(f"{path}: must be a map")
    return content


def _form(folder: Path, file: str, schema_id: Any) -> WireForm:
    match = _NAME.match(file)
    if match is None or type(schema_id) is not int or not 0 < schema_id <= ID_MAX:
        raise Refused(f"{folder / IDS}: {file!r} must be <type>.v<major>.r<revision>.avsc in {FOLDER}, with a whole id")
    if not (folder / file).exists():
        raise Refused(f"{folder / file}: is missing, but records may name its id {schema_id}; bring the file back")
    schema = _read(folder / file)
    try:
        to_parsing_canonical_form(schema)
    except (SchemaParseException, UnknownType, KeyError) as error:
        raise Refused(f"{folder / file}: is no Avro schema: {error}") from None
    return WireForm(schema_id, match["type"], int(match["major"]), int(match["revision"]), file, schema)
