r"""The one byte form that is signed: a purpose, nine named fields, the value's exact bytes.

    <purpose>\n    then   <length>:<text> of node, session, type, tenant, task
                 then   <decimal>;  of sequence, attempt, member, epoch
                 then   <length>:<value>

Lengths are decimal counts of bytes and the order is fixed, so no two different inputs share a form: moving a byte from
one field into the next changes a length. The purpose keeps a receipt's signature from standing for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evenflow.core.errors import Refused

_TEXT_BYTES_MAX: Final = 2_560


@dataclass(frozen=True, slots=True)
class SignedFields:
    """What is signed besides the value. Text is ASCII (all ids are); what does not apply stays empty or 0.

    `session` is the agent's, `sequence` counts within it from 1; `type` is the event's; `attempt`, `member` and `epoch`
    are those of the command that the receipt answers. Who asks something of a task signs other facts in the same form:
    `signatures.submission_fields` says which.
    """

    node: str
    session: str
    sequence: int
    type: str
    tenant: str = ""
    task: str = ""
    attempt: int = 0
    member: int = 0
    epoch: int = 0


def canonical_form(purpose: str, value: bytes, fields: SignedFields) -> bytes:
    """The bytes to sign. Raises Refused when a text is not ASCII or all are too long, or a number is no integer."""
    node, session, kind, tenant, task = fields.node, fields.session, fields.type, fields.tenant, fields.task
    try:
        text = (
            f"{purpose}\n{len(node)}:{node}{len(session)}:{session}{len(kind)}:{kind}{len(tenant)}:{tenant}"
            f"{len(task)}:{task}{fields.sequence:d};{fields.attempt:d};{fields.member:d};{fields.epoch:d};{len(value)}:"
        ).encode("ascii")
    except (ValueError, TypeError) as error:
        raise Refused("signed fields must be ASCII text and integers") from error
    if len(text) > _TEXT_BYTES_MAX:
        raise Refused(f"signed fields of {len(text)} bytes; at most {_TEXT_BYTES_MAX} are signed")
    return text + value
