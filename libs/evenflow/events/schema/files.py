"""Write the schemas folder and its pages, and say how the present files differ from what would be written.

JSON Schemas, the AsyncAPI file and the pages docs/events.md and docs/closed-lists.md are derived and overwritten. Avro
files and ids.json are only added to, behind the gate of `compatibility`. Examples are written by the testkit, which
knows how to make bodies, and checked here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from evenflow.core.errors import Refused
from evenflow.events.contract import Contract
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.schema.asyncapi import asyncapi
from evenflow.events.schema.avro_schema import avro_schema, wire_form
from evenflow.events.schema.compatibility import incompatibilities, narrowings
from evenflow.events.schema.document_schema import KINDS, document_schema
from evenflow.events.schema.json_schema import json_schema
from evenflow.events.schema.overview import closed_lists_page, events_page
from evenflow.events.schema.released import FOLDER, IDS, Released, file_of
from evenflow.events.types import CONTRACTS

SCHEMAS: Final = "schemas"
_DERIVED: Final = (f"{SCHEMAS}/json", f"{SCHEMAS}/documents")

Contracts = dict[str, type[Contract]]


@dataclass
class Plan:
    """What would be written, by path from the root, and what forbids it."""

    files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def write(root: Path, contracts: Contracts = CONTRACTS) -> list[str]:
    """Write everything under `root`; gives the paths that changed.

    Raises Refused, and writes nothing, when a contract can't follow what was released.
    """
    plan = _plan(root, contracts)
    if plan.problems:
        raise Refused("\n".join(plan.problems))
    changed = [path for path, text in plan.files.items() if _present(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(plan.files[path], encoding="utf-8")
    surplus = _surplus(root, plan, contracts)
    for path in surplus:
        (root / path).unlink()
    return changed + surplus


def check(root: Path, contracts: Contracts = CONTRACTS) -> list[str]:
    """Every difference between the files under `root` and the contracts, as `path: problem`; empty when in order."""
    plan = _plan(root, contracts)
    problems = list(plan.problems)
    for path, text in plan.files.items():
        present = _present(root / path)
        if present is None:
            problems.append(f"{path}: is missing; run make schemas")
        elif present != text:
            problems.append(f"{path}: differs from the contracts; run make schemas")
    problems += [f"{path}: belongs to no contract; run make schemas" for path in _surplus(root, plan, contracts)]
    return problems + _examples(root, contracts)


def _present(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def written(value: Any) -> str:
    """JSON as it stands in files: sorted keys, a line end behind the last line."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


# --- what would be written ----------------------------------------------------------------------------------------


def _plan(root: Path, contracts: Contracts) -> Plan:
    plan = Plan()
    for kind in KINDS:
        plan.files[f"{SCHEMAS}/documents/{kind}.schema.json"] = written(document_schema(kind))
    for name in sorted(contracts):
        _plan_json(plan, root, name, contracts[name])
    plan.files[f"{SCHEMAS}/asyncapi.json"] = written(asyncapi())
    plan.files["docs/events.md"] = events_page()
    plan.files["docs/closed-lists.md"] = closed_lists_page()
    _plan_avro(plan, root, contracts)
    return plan


def _json_path(name: str, major: int) -> str:
    return f"{SCHEMAS}/json/{name}.v{major}.schema.json"


def _plan_json(plan: Plan, root: Path, name: str, contract: type[Contract]) -> None:
    path = _json_path(name, contract.MAJOR)
    schema = json_schema(contract)
    before = _present(root / path)
    if before is not None and contract is not TaskSubmitted:
        try:
            lost = narrowings(schema, json.loads(before))
        except ValueError:
            lost = []  # It differs then, which is said below.
        plan.problems += [f"{path}: {problem}; {_way_out(contract)}" for problem in lost]
    plan.files[path] = written(schema)


def _way_out(contract: type[Contract]) -> str:
    return f"give {contract.__name__} a new MAJOR, or make a new event type"


def _plan_avro(plan: Plan, root: Path, contracts: Contracts) -> None:
    folder = root / SCHEMAS
    try:
        released = Released(folder)
    except Refused as refusal:
        plan.problems.append(refusal.message)
        return
    forms = released.all()
    ids = {form.file: form.id for form in forms}
    next_id = max(ids.values(), default=0) + 1
    for name in sorted(contracts):
        contract = contracts[name]
        schema = avro_schema(contract)
        revisions = released.revisions(name, contract.MAJOR)
        is_same = bool(revisions) and wire_form(revisions[0].schema) == wire_form(schema)
        for form in revisions[is_same:]:
            found = incompatibilities(schema, form.schema)
            plan.problems += [f"{SCHEMAS}/{form.file}: {problem}; {_way_out(contract)}" for problem in found]
        if is_same:
            plan.files[f"{SCHEMAS}/{revisions[0].file}"] = written(schema)  # Remarks and defaults may change.
            continue
        file = file_of(name, contract.MAJOR, len(revisions) + 1)
        plan.files[f"{SCHEMAS}/{file}"] = written(schema)
        ids[file] = next_id
        next_id += 1
    for form in forms:
        if form.event_type not in contracts or form.major > contracts[form.event_type].MAJOR:
            plan.problems.append(f"{SCHEMAS}/{form.file}: was released, but no contract knows it any more")
    plan.files[f"{SCHEMAS}/{IDS}"] = written(ids)


def _surplus(root: Path, plan: Plan, contracts: Contracts) -> list[str]:
    """Files that nothing writes. JSON Schemas of earlier major versions stay."""
    kept = {_json_path(name, major) for name, one in contracts.items() for major in range(1, one.MAJOR)}
    folders = (*_DERIVED, f"{SCHEMAS}/{FOLDER}")
    found = [path.relative_to(root).as_posix() for name in folders for path in sorted((root / name).glob("*"))]
    released = _released_files(root)
    return [path for path in found if path not in plan.files and path not in kept and path not in released]


def _released_files(root: Path) -> list[str]:
    try:
        return [f"{SCHEMAS}/{form.file}" for form in Released(root / SCHEMAS).all()]
    except Refused:
        return [path.relative_to(root).as_posix() for path in (root / SCHEMAS / FOLDER).glob("*")]


def _examples(root: Path, contracts: Contracts) -> list[str]:
    """Each type's example must be there and be a body of its contract."""
    problems: list[str] = []
    for name, contract in sorted(contracts.items()):
        path = f"{SCHEMAS}/examples/{name}.json"
        text = _present(root / path)
        if text is None:
            problems.append(f"{path}: is missing; run make schemas")
            continue
        try:
            if contract is not TaskSubmitted:
                contract.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            at = ".".join(map(str, first["loc"]))
            problems.append(f"{path}: {at}: {first['msg']}")
    return problems
