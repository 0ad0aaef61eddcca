"""Whether a request about a task comes from someone who may speak for its tenant.

The log says nothing of who wrote a record, so whoever writes tasks directly signs: value, event id, key and time. What
is not trusted changes nothing, makes no task and takes no id; a refusal says why, and the partition goes on.
"""

from __future__ import annotations

from typing import Final

from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.reasons import Reason
from evenflow.events.envelope import Envelope, SubmitterStamp
from evenflow.placement.deciding.draft import Draft
from evenflow.platform.broker.codec import Received
from evenflow.platform.security.signatures import SIGNATURE_BYTES, submission_fields, verify_submission

#: The tenant of those who sign nothing, where that is allowed.
ANONYMOUS: Final = "anonymous"
#: How far a signer's clock may be ahead of ours.
SKEW_MS: Final = 300_000
SHOWN_MAX: Final = 128


def trusted(draft: Draft, received: Received, tenant: str, task: str) -> bool:
    """Whether a record may ask something of a tenant's task; if not, the refusal is said."""
    stamp = received.envelope.submitter
    if stamp is None:
        allowed = draft.settings.unsigned_submissions
        if allowed == "any" or (allowed == ANONYMOUS and tenant == ANONYMOUS):
            return True
        problem = "none"
    else:
        problem = _problem(draft, received, stamp, tenant)
        if not problem:
            return True
    reason = {
        "reason": Reason.PERMISSION,
        "dimension": "signature",
        "needed": f"the signature of a signer for tenant {tenant}",
        "available": problem,
    }
    body = {"tenant": tenant, "task": task, "reason": reason}
    draft.say_of(EventType.SUBMISSION_REFUSED, f"{tenant}/{task}", tenant, body, received)
    draft.note("request about a task refused", task=f"{tenant}/{task}", problem=problem, origin=received.origin)
    return False


def outlived(received: Received, changed_ms: int) -> bool:
    """Whether a signed change is older than the last signed one that its task took: somebody says it again."""
    return received.envelope.submitter is not None and received.envelope.time_ms < changed_ms


def _time_problem(draft: Draft, envelope: Envelope) -> str:
    """What is wrong with the time of a signature: nothing may hold longer than the id that it used is remembered.

    A task that was signed ahead of our clock may end, and later be forgotten, by as much sooner.
    """
    signed_ms, kept_ms = envelope.time_ms, draft.settings.task_id_retention_ms
    ahead_ms = min(SKEW_MS, kept_ms // 4)
    if signed_ms - draft.now_ms > ahead_ms:
        return "signed in the future; set the signer's clock"
    if draft.now_ms - signed_ms >= kept_ms - ahead_ms:
        return "signed longer ago than ids are remembered; submit it again"
    if envelope.type != EventType.TASK_SUBMITTED:  # nothing starts by those
        return ""
    forgotten_ms = draft.model.forgotten_ms(draft.settings.ended_tasks_max)
    if forgotten_ms is not None and signed_ms <= forgotten_ms + ahead_ms:
        return "signed before the oldest id that is remembered; submit it again, and raise ended_tasks_max"
    return ""


def _problem(draft: Draft, received: Received, stamp: SubmitterStamp, tenant: str) -> str:
    """What is wrong with a signature; empty when it holds. The cheap questions come first."""
    envelope = received.envelope
    known = draft.tables.signers.get(stamp.signer)
    name = ascii(stamp.signer[:SHOWN_MAX])[1:-1]
    if known is None:
        return f"signer {name} is not known"
    signer, public = known
    if signer.revoked:
        return f"signer {name} was revoked"
    if not signer.speaks_for(tenant):
        return f"signer {name} does not speak for this tenant"
    if problem := _time_problem(draft, envelope):
        return problem
    fields = submission_fields(
        signer=stamp.signer,
        event=envelope.id,
        type_=envelope.type,
        key=received.key,
        time_ms=envelope.time_ms,
    )
    try:
        signature = bytes.fromhex(stamp.signature)
    except ValueError:
        signature = b""
    if len(signature) != SIGNATURE_BYTES or not verify_submission(public, received.value, fields, signature):
        return f"not signed so by {name}: value, key, id or time was altered, or another key was used"
    return ""
