"""Switches that break one mechanism each: a check that stays green under its mutant proves nothing.

One file per mutant, grouped by where it sits; `MUTANTS` lists them with what must fail under each.
"""

from __future__ import annotations

from typing import Final

from evenflow.testkit.mutants.admission.counted_request import without_counted_request
from evenflow.testkit.mutants.admission.exact_quota import without_exact_quota
from evenflow.testkit.mutants.admission.gang_atomicity import without_gang_atomicity
from evenflow.testkit.mutants.admission.kept_share import without_kept_share
from evenflow.testkit.mutants.admission.strict_numbers import without_strict_numbers
from evenflow.testkit.mutants.agents.manifest_last import without_manifest_last
from evenflow.testkit.mutants.agents.stale_wishes import without_stale_refusal
from evenflow.testkit.mutants.billing.double_charge import with_double_charge
from evenflow.testkit.mutants.fleet.blindness import without_blindness
from evenflow.testkit.mutants.log.archive_before_expiry import without_archive_before_expiry
from evenflow.testkit.mutants.log.commit_before_park import with_commit_before_park
from evenflow.testkit.mutants.log.fence import without_fence
from evenflow.testkit.mutants.log.image_offset import with_image_newer_than_its_offset
from evenflow.testkit.mutants.log.offsets_before_state import with_offsets_before_state
from evenflow.testkit.mutants.mutant import Mutant
from evenflow.testkit.mutants.placement.double_release import with_double_release
from evenflow.testkit.mutants.placement.final_end import without_final_end
from evenflow.testkit.mutants.placement.inbox import without_inbox
from evenflow.testkit.mutants.placement.late_receipts import without_late_refusal
from evenflow.testkit.mutants.placement.reclaim_check import without_reclaim_check
from evenflow.testkit.mutants.placement.tombstone import with_early_tombstone

MUTANTS: Final[dict[str, Mutant]] = {
    "fence": Mutant("deciders do not fence each other", without_fence, ()),
    "inbox": Mutant("a submission that is read again begins anew", without_inbox, ()),
    "reclaim-check": Mutant("a place is free on a status, without proof", without_reclaim_check, ()),
    "gang-atomicity": Mutant(
        "a gang that does not fit gets what there is", without_gang_atomicity, ("R09-a-two-gangs",)
    ),
    "double-release": Mutant("a release told again frees the next attempt", with_double_release, ()),
    "late-receipts": Mutant("the end of an earlier attempt ends the current one", without_late_refusal, ()),
    "final-end": Mutant("a receipt after the end counts again", without_final_end, ("R46-late-and-made-up-receipts",)),
    "blindness": Mutant("an observer that hears nobody takes all for lost", without_blindness, ()),
    "commit-before-park": Mutant("a record is committed before its dead letter", with_commit_before_park, ()),
    "manifest-last": Mutant("a checkpoint shows before its parts", without_manifest_last, ()),
    "double-charge": Mutant("usage that is read again is charged again", with_double_charge, ()),
    "stale-wishes": Mutant("agents follow wishes of earlier attempts and deciders", without_stale_refusal, ()),
    "exact-quota": Mutant(
        "a limit is tested in binary floating point", without_exact_quota, ("R01-a-limit-met-exactly",)
    ),
    "counted-request": Mutant("a limit is tested without the request", without_counted_request, ()),
    "early-tombstone": Mutant("desired state vanishes before its place is free", with_early_tombstone, ()),
    "offsets-before-state": Mutant("offsets are committed before the state", with_offsets_before_state, ()),
    "image-offset": Mutant("a state image skips what came while it was made", with_image_newer_than_its_offset, ()),
    "archive-before-expiry": Mutant("records expire that the archive did not take", without_archive_before_expiry, ()),
    "strict-numbers": Mutant(
        "numbers that are none, infinite or negative count as zero", without_strict_numbers, ("R04-hostile-numbers",)
    ),
    "kept-share": Mutant("a share of a device is cut to whole devices", without_kept_share, ("R06-quarters",)),
}
