"""One example body of every event type, all about one small story: task `train-7` of tenant `vision`.

Values come by field name, so that a new contract or field has its example at once; a type whose free document has a
meaning says it below. `python -m evenflow.testkit.examples ROOT` writes them into schemas/examples.
"""

from __future__ import annotations

import enum
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.contract import Contract, Document
from evenflow.events.contracts.tasks import TaskSubmitted
from evenflow.events.types import CONTRACTS

FOLDER: Final = "schemas/examples"
_NOW_MS: Final = 1_767_225_600_000
_DIGEST: Final = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

_SPECIFICATION: Final[Document] = {
    "id": "train-7",
    "tenant": "vision",
    "queue": "research",
    "command": ["python", "train.py"],
    "resources": {"cpu": 4, "memory": "16GiB", "devices": {"count": 1, "models": ["a100-80g"]}},
    "declared_s": 7200,
    "data": [{"dataset": "imagenet"}],
}
_NODE: Final[Document] = {
    "id": "zrh-01",
    "site": "zurich",
    "cpu": 64,
    "memory": "512GiB",
    "devices": {"model": "a100-80g", "count": 8},
    "price_per_hour": "6.40",
}
_DATASET: Final[Document] = {"id": "imagenet", "size": "150GB", "copies": [{"site": "frankfurt"}]}

#: Field → value, where the name says what it holds.
_BY_NAME: Final[dict[str, Any]] = {
    "tenant": "vision",
    "task": "train-7",
    "queue": "research",
    "pool": "main",
    "node": "zrh-01",
    "site": "zurich",
    "from_site": "frankfurt",
    "to_site": "zurich",
    "dataset": "imagenet",
    "transfer": "vision/train-7/1/0/imagenet",
    "entry": "vision/train-7/1/0/work",
    "manifest": "checkpoints/vision/train-7/g1/c3/manifest.json",
    "origin": "evenflow.runs.v1/4/1029",
    "session": "s-4c1f",
    "request": "r-88",
    "name": "train-7",
    "currency": "USD",
    "previous": "0" * 64,
    "hash": _DIGEST,
    "policy_hash": _DIGEST,
    "inputs_hash": _DIGEST,
    "load_hash": _DIGEST,
    "rate_version": "default/3",
    "agent_version": "0.1",
    "actor": "ana",
    "who": "ana",
    "action": "cordon",
    "subject": "zrh-01",
    "service": "placement",
    "observer": "inventory",
    "outcome": "done",
    "by": "vision/urgent-1",
    "ended_as": "succeeded",
    "dimension": "devices",
    "needed": "8 devices",
    "available": "3 devices",
    "path": "resources.devices.count",
    "problem": "must be from 0 to 1024",
    "code": "field-refused",
    "message": "",
    "note": "",
    "damaged": ["checkpoints/vision/train-7/g1/c2/manifest.json"],
    "document": _NODE,
    "specification": _SPECIFICATION,
    "change": {"priority": 80},
    "parameters": {"node": "zrh-01"},
    "row": {"task": "train-7", "state": "queued"},
    "offsets": {"evenflow.tasks.v1/3": 118},
    "stage_us": {"fit": 180, "score": 95},
    "residency": ["eu-central"],
    "price_per_gb_micro": 20_000,
    "price_per_hour_micro": 6_400_000,
    "cpu_price_per_hour_micro": 40_000,
    "cpu_milli": 4_000,
    "device_milli": 1_000,
    "checkpoint": 3,
    "resumed_checkpoint": 3,
    "number": 12,
    "round": 218,
    "stay_wait_ms": 5_400_000,
    "cross_wait_ms": 20_000,
    "transfer_in_ms": 120_000,
    "transfer_out_ms": 0,
    "gain_ms": 5_280_000,
    "gain_micro": 0,
    "wait_ms": 42_000,
    "taken": True,
    "reachable": True,
    "started": True,
    "keep_copy": True,
    "authoritative": True,
    "attempt": 1,
    "generation": 1,
    "epoch": 4,
    "member": 0,
    "index": 0,
    "exit_code": 0,
    "reads": 1,
    "members": 1,
    "milli": 1_000,
    "bytes": 150_000_000_000,
    "priority": 50,
    "loss_ppm": 100,
    "confidence_ppm": 950_000,
    "margin_ppm": 100_000,
}
#: End of a name → value, for quantities. Longer ends come first.
_BY_END: Final = (
    ("at_ms", _NOW_MS),
    ("submitted_ms", _NOW_MS - 60_000),
    ("sampled_ms", _NOW_MS),
    ("since_ms", _NOW_MS),
    ("until_ms", 0),
    ("deadline_ms", 600_000),
    ("_milli_ms", 3_600_000_000),
    ("_ms", 3_600_000),
    ("_us", 12_000),
    ("_micro", 6_400_000),
    ("_bytes", 64_000_000_000),
    ("_bits", 10_000_000_000),
    ("_milli", 1_000),
    ("_ppm", 0),
    ("_count", 1),
)
#: What a type says differently.
_BY_TYPE: Final[dict[str, dict[str, Any]]] = {
    EventType.DATASET_ADD_REQUESTED: {"document": _DATASET},
    EventType.DOCUMENT_PUBLISHED: {
        "kind": "queue",
        "name": "research",
        "version": 3,
        "document": {"id": "research", "limit": {"devices": 16}, "waiting_limit": 500},
        "reason": "more room for the paper",
    },
    EventType.TASK_ENDED: {"end": TaskState.SUCCEEDED, "cause": None},
    EventType.ALERT_RAISED: {"name": "node.lost", "message": "silent for 31 s"},
    EventType.ALERT_CLEARED: {"name": "node.lost"},
    EventType.ALERT_ACKNOWLEDGED: {"name": "node.lost"},
    EventType.CHARGE_CORRECTED: {"kind": "correction", "amount_micro": -640_000, "note": "vision/train-7/1/0/work"},
    EventType.USAGE_MEASURED: {"crossing": None, "crossing_wait_ms": 0},
    EventType.STATE_RECORDED: {"state_version": 1},
}


def example(contract: type[Contract]) -> Contract:
    """The example of one contract: the same in every process."""
    if contract is TaskSubmitted:
        return TaskSubmitted(raw=_text(_SPECIFICATION).encode())
    own = _BY_TYPE.get(str(contract.TYPE), {})
    return contract.model_validate({**_filled(contract), **own})


def examples() -> dict[str, Contract]:
    """Every type's example."""
    return {name: example(contract) for name, contract in sorted(CONTRACTS.items())}


def example_text(body: Contract) -> str:
    """A body as it stands in its file: JSON with sorted keys and a line end."""
    return body.raw.decode() if isinstance(body, TaskSubmitted) else _text(body.model_dump(mode="json"))


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def _filled(model: type[BaseModel]) -> dict[str, Any]:
    return {name: _value(name, field.annotation) for name, field in model.model_fields.items()}


def _value(name: str, annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _value(name, next(one for one in arguments if one is not types.NoneType))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _filled(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.StrEnum):
        return next(iter(annotation))
    if origin is tuple:
        if name in _BY_NAME and isinstance(_BY_NAME[name], list):
            return _BY_NAME[name]
        return [_value(name.removesuffix("s"), arguments[0])]
    if annotation == Document or origin is dict:
        return _BY_NAME[name]
    if origin is typing.Literal:
        return arguments[0]
    return _plain(name, arguments[0] if origin is typing.Annotated else annotation)


def _plain(name: str, kind: Any) -> Any:
    if kind is bool:
        return _BY_NAME.get(name, False)
    if name in _BY_NAME and isinstance(_BY_NAME[name], kind):
        return _BY_NAME[name]
    if kind is int:
        return next((value for end, value in _BY_END if name.endswith(end)), 1)
    return name.replace("_", "-")


def write(root: Path) -> list[str]:
    """Write every example under `root`, take away what belongs to no type; gives the paths that changed."""
    wanted = {f"{FOLDER}/{name}.json": example_text(body) for name, body in examples().items()}
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    present = {path.relative_to(root).as_posix(): path for path in sorted((root / FOLDER).iterdir())}
    changed = [name for name, text in wanted.items() if name not in present or present[name].read_text() != text]
    for name in changed:
        (root / name).write_text(wanted[name], encoding="utf-8")
    surplus = [name for name in present if name not in wanted]
    for name in surplus:
        present[name].unlink()
    return changed + surplus


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}\n" for name in write(Path(sys.argv[1])))
