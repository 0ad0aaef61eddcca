"""Every call of the API as a value: method, address, parameters, body, and how its answer is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from evenflow.client import results

T = TypeVar("T")
Json = dict[str, Any]
API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """One request. `wait_ms` is how long the server may take beyond the usual; `reason` is why, for the record."""

    method: str
    path: str
    read: Callable[[Any], T]
    params: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = None
    json: Any = None
    wait_ms: int = 0
    reason: str = ""


def as_it_is(body: Any) -> Json:
    """The answer's JSON."""
    return dict(body)


def untyped(call: Call[Any]) -> Call[Json]:
    """The same call, its answer taken as it is."""
    return Call(call.method, call.path, as_it_is, call.params, call.content, call.json, call.wait_ms, call.reason)


def items(body: Any) -> list[Json]:
    """The rows of an answer."""
    return list(body["items"])


def part(name: str) -> str:
    """A name as one part of an address."""
    return quote(name, safe="")


def given(**params: Any) -> Json:
    """Parameters that were given."""
    return {name: value for name, value in params.items() if value not in ("", None)}


def task_path(task: str, rest: str = "") -> str:
    """The address of a task."""
    return f"{API}/tasks/{part(task)}{rest}"


def submit(specification: bytes, wait_ms: int, reason: str = "") -> Call[results.Submitted]:
    """Submit a document as it is."""
    return Call(
        "POST",
        f"{API}/tasks",
        results.Submitted.model_validate,
        params=given(wait_ms=wait_ms or None),
        content=specification,
        wait_ms=wait_ms,
        reason=reason,
    )


def tasks(**wanted: Any) -> Call[results.Page[results.TaskRow]]:
    """A page of tasks."""
    return Call("GET", f"{API}/tasks", results.Page[results.TaskRow].model_validate, params=given(**wanted))


def status(task: str, tenant: str) -> Call[results.TaskStatus]:
    """Everything about a task."""
    return Call("GET", task_path(task), results.TaskStatus.model_validate, params={"tenant": tenant})


def of_task(task: str, what: str, tenant: str) -> Call[Json]:
    """why, events, specification."""
    return Call("GET", task_path(task, f"/{what}"), as_it_is, params={"tenant": tenant})


def cancel(task: str, tenant: str, reason: str) -> Call[Json]:
    """Cancel a task."""
    return Call("POST", task_path(task, "/cancel"), as_it_is, params={"tenant": tenant}, json=given(reason=reason))


def reprioritise(task: str, tenant: str, priority: int, reason: str) -> Call[Json]:
    """Change a task's priority."""
    body = {"priority": priority, **given(reason=reason)}
    return Call("PATCH", task_path(task), as_it_is, params={"tenant": tenant}, json=body)


def nodes(**wanted: Any) -> Call[results.Page[results.NodeRow]]:
    """A page of nodes."""
    return Call("GET", f"{API}/nodes", results.Page[results.NodeRow].model_validate, params=given(**wanted))


def node(name: str) -> Call[Json]:
    """One node."""
    return Call("GET", f"{API}/nodes/{part(name)}", as_it_is)


def administer(name: str, action: str, reason: str, deadline_s: float | None) -> Call[Json]:
    """cordon, uncordon, drain, revoke."""
    body = given(reason=reason, deadline_s=deadline_s)
    return Call("POST", f"{API}/nodes/{part(name)}/{action}", as_it_is, json=body)


def listing(what: str, **wanted: Any) -> Call[list[Json]]:
    """Rows of sites, links, datasets, rounds, alerts, changes, documents, dlq."""
    return Call("GET", f"{API}/{what}", items, params=given(**wanted))


def queues() -> Call[list[results.QueueRow]]:
    """All queues."""
    return Call("GET", f"{API}/queues", lambda body: [results.QueueRow.model_validate(row) for row in body["items"]])


def ledger(**wanted: Any) -> Call[results.Ledger]:
    """Ledger lines and sums."""
    return Call("GET", f"{API}/ledger", results.Ledger.model_validate, params=given(**wanted))


def events(wait_ms: int, **wanted: Any) -> Call[results.Events]:
    """A piece of the tail."""
    params = given(wait_ms=wait_ms or None, **wanted)
    return Call("GET", f"{API}/events", results.Events.model_validate, params=params, wait_ms=wait_ms)


def put_document(kind: str, name: str, document: bytes, reason: str, expect: int | None) -> Call[Json]:
    """Publish a version of a document."""
    path = f"{API}/documents/{part(kind)}/{part(name)}"
    return Call("PUT", path, as_it_is, params=given(reason=reason, expect=expect), content=document)


def document(kind: str, name: str) -> Call[Json]:
    """The newest version of a document."""
    return Call("GET", f"{API}/documents/{part(kind)}/{part(name)}", as_it_is)


def put_dataset(name: str, document: bytes, reason: str = "") -> Call[Json]:
    """Register a dataset."""
    return Call("PUT", f"{API}/datasets/{part(name)}", as_it_is, content=document, reason=reason)


def letter(topic: str, partition: int, offset: int, action: str = "", reason: str = "") -> Call[Json]:
    """Show a dead letter, or retry or drop it."""
    path = f"{API}/dlq/{part(topic)}/{partition}/{offset}"
    if not action:
        return Call("GET", path, as_it_is)
    return Call("POST", f"{path}/{action}", as_it_is, json={}, reason=reason)


def condition(what: str) -> Call[Json]:
    """health or ready."""
    return Call("GET", f"/{what}", as_it_is)


def issue_token(wish: Mapping[str, Any], reason: str) -> Call[Json]:
    """Issue an access token: name, role, tenant, queue, expires_s."""
    return Call("POST", f"{API}/tokens", as_it_is, json=given(**wish), reason=reason)


def revoke_token(token: str, reason: str) -> Call[Json]:
    """Revoke an access token by its id or name."""
    return Call("DELETE", f"{API}/tokens/{part(token)}", as_it_is, reason=reason)


def put_signer(name: str, public_key: str, tenants: list[str], reason: str) -> Call[Json]:
    """Let a key's holder submit for tenants."""
    body = {"public_key": public_key, "tenants": tenants}
    return Call("PUT", f"{API}/signers/{part(name)}", as_it_is, json=body, reason=reason)


def revoke_signer(name: str, reason: str) -> Call[Json]:
    """Take a signer's right back."""
    return Call("DELETE", f"{API}/signers/{part(name)}", as_it_is, reason=reason)


def invite(expires_s: int, reason: str) -> Call[Json]:
    """Make a one-time join token for a node."""
    return Call("POST", f"{API}/invitations", as_it_is, json={"expires_s": expires_s}, reason=reason)


def uninvite(invitation: str, reason: str) -> Call[Json]:
    """Take an unused join token back."""
    return Call("DELETE", f"{API}/invitations/{part(invitation)}", as_it_is, reason=reason)
