"""Documents of kind `setting` that say who may ask for what: access tokens and signers of submissions.

    setting/token.<id>       digest of a token's secret, never the secret; role, bounds, expiry
    setting/signer.<name>    a public key, and the tenants in whose name it may submit

They travel with the policies, so that every copy of a service knows them from the log, and an older version of either
is history like any other document's. One that is revoked stays there and says so.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from evenflow.core.lifecycle.roles import BOUNDED, Role
from evenflow.events.documents import fields as f
from evenflow.events.documents import forms
from evenflow.events.documents import quantities as q

KIND: Final = "setting"
TOKEN_PREFIX: Final = "token."  # noqa: S105  the beginning of a document's name, no secret
SIGNER_PREFIX: Final = "signer."
ANY_TENANT: Final = "*"
TENANTS_MAX: Final = 256
HEX_GRAMMAR: Final = "[0-9a-f]{64}"
TIME_MS_MAX: Final = 2**53


@dataclass(frozen=True, slots=True)
class Token:
    """One access token. Empty `tenant` and `queue` = any; times are the wall clock's, milliseconds since 1970."""

    id: str
    name: str
    role: Role
    digest: str
    issued_ms: int
    expires_ms: int
    tenant: str = ""
    queue: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Signer:
    """Who may sign what is written straight to the log: a public key of 64 hexadecimal digits, and its tenants."""

    name: str
    public_key: str
    tenants: tuple[str, ...]
    revoked: bool = False

    def speaks_for(self, tenant: str) -> bool:
        """Whether this signer may submit in a tenant's name."""
        return tenant in self.tenants or ANY_TENANT in self.tenants


def _read_tenant(value: object) -> str:
    return ANY_TENANT if value == ANY_TENANT else str(f.read_id(value))


_HEXADECIMAL: Final = re.compile(rf"{HEX_GRAMMAR}\Z")


def _read_hexadecimal(value: object) -> str:
    if not isinstance(value, str) or not _HEXADECIMAL.match(value):
        f.refuse("must be 64 lower-case hexadecimal digits")
    return str(value)


forms.described(_read_tenant, forms.Text(f.ID_MAX, lines=False, empty=False))
forms.described(_read_hexadecimal, forms.Pattern(HEX_GRAMMAR))

_time = q.integer(0, TIME_MS_MAX)

TOKEN_FIELDS: Final[dict[str, f.Reader]] = {
    "id": f.read_id,
    "name": f.read_id,
    "role": f.one_of(*Role),
    "digest": _read_hexadecimal,
    "issued_ms": _time,
    "expires_ms": _time,
    "tenant": f.read_id,
    "queue": f.read_id,
    "revoked": f.read_bool,
}


@f.map_of(TOKEN_FIELDS, "id", "name", "role", "digest", "issued_ms", "expires_ms")
def _read_token(given: dict[str, Any]) -> Token:
    role = Role(given["role"])
    if role not in BOUNDED and (given.get("tenant") or given.get("queue")):
        bounded = ", ".join(BOUNDED)
        raise f.FieldProblem(below=[("role", f"{role} works on the whole pool; only {bounded} can be bounded")])
    return Token(**{**given, "role": role})


def parse_token(document: object) -> Token:
    """Read a token's document. Raises FieldRefused for the first problem."""
    return f.parsed(_read_token, document)


def token_document(token: Token) -> dict[str, Any]:
    """The inverse of `parse_token`: what is at its default is left out."""
    return _written(token)


SIGNER_FIELDS: Final[dict[str, f.Reader]] = {
    "name": f.read_id,
    "public_key": _read_hexadecimal,
    "tenants": f.list_of(_read_tenant, TENANTS_MAX),
    "revoked": f.read_bool,
}


@f.map_of(SIGNER_FIELDS, "name", "public_key", "tenants")
def _read_signer(given: dict[str, Any]) -> Signer:
    if not given["tenants"]:
        raise f.FieldProblem(below=[("tenants", "is empty; name those in whose name it may submit, or *")])
    return Signer(**given)


def parse_signer(document: object) -> Signer:
    """Read a signer's document. Raises FieldRefused for the first problem."""
    return f.parsed(_read_signer, document)


def signer_document(signer: Signer) -> dict[str, Any]:
    """The inverse of `parse_signer`: what is at its default is left out."""
    return {**_written(signer), "tenants": list(signer.tenants)}


def _written(entry: Token | Signer) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if value not in ("", False)}
