"""The mutants by name, with what must show each: kinds of fault, a seed, scenario files."""

from __future__ import annotations

from typing import Final

from evenflow.testkit.mutants.admission.counted_request import without_counted_request
from evenflow.testkit.mutants.admission.exact_model import without_exact_model
from evenflow.testkit.mutants.admission.exact_quota import without_exact_quota
from evenflow.testkit.mutants.admission.gang_atomicity import without_gang_atomicity
from evenflow.testkit.mutants.admission.kept_document import without_kept_document
from evenflow.testkit.mutants.admission.kept_share import without_kept_share
from evenflow.testkit.mutants.admission.loose_ids import with_loose_ids
from evenflow.testkit.mutants.admission.strict_numbers import without_strict_numbers
from evenflow.testkit.mutants.admission.whole_return import without_whole_return
from evenflow.testkit.mutants.agents.manifest_last import without_manifest_last
from evenflow.testkit.mutants.agents.run_from_ready import without_run_from_ready
from evenflow.testkit.mutants.agents.stale_wishes import without_stale_refusal
from evenflow.testkit.mutants.agents.told_again import without_telling_again
from evenflow.testkit.mutants.billing.core_price import without_core_price
from evenflow.testkit.mutants.billing.double_charge import with_double_charge
from evenflow.testkit.mutants.fleet.adoption import without_adoption
from evenflow.testkit.mutants.fleet.blindness import without_blindness
from evenflow.testkit.mutants.fleet.one_observer import without_one_observer
from evenflow.testkit.mutants.fleet.struck_copies import without_struck_copies
from evenflow.testkit.mutants.fleet.tolerance import without_tolerance
from evenflow.testkit.mutants.log.archive_before_expiry import without_archive_before_expiry
from evenflow.testkit.mutants.log.commit_before_park import with_commit_before_park
from evenflow.testkit.mutants.log.dropped_letters import with_dropped_letters
from evenflow.testkit.mutants.log.fence import without_fence
from evenflow.testkit.mutants.log.image_offset import with_image_newer_than_its_offset
from evenflow.testkit.mutants.log.offsets_before_state import with_offsets_before_state
from evenflow.testkit.mutants.mutant import Mutant
from evenflow.testkit.mutants.placement.cancel import with_cancel_at_once
from evenflow.testkit.mutants.placement.counted_once import without_counted_once
from evenflow.testkit.mutants.placement.double_release import with_double_release
from evenflow.testkit.mutants.placement.final_end import without_final_end
from evenflow.testkit.mutants.placement.growing_pause import without_growing_pause
from evenflow.testkit.mutants.placement.inbox import without_inbox
from evenflow.testkit.mutants.placement.late_receipts import without_late_refusal
from evenflow.testkit.mutants.placement.never_free import without_never_free
from evenflow.testkit.mutants.placement.one_generation import without_one_generation
from evenflow.testkit.mutants.placement.reclaim_check import without_reclaim_check
from evenflow.testkit.mutants.placement.soft_avoidance import without_soft_avoidance
from evenflow.testkit.mutants.placement.tombstone import with_early_tombstone

#: Files that take minutes, with the mutants that they are tried against.
SLOW: Final[dict[str, tuple[str, ...]]] = {
    "R01-c-thousand-rounds": ("reclaim-check", "exact-quota", "whole-return"),
    "image-and-tail": ("image-offset",),
}

MUTANTS: Final[dict[str, Mutant]] = {
    "fence": Mutant(
        "deciders do not fence each other",
        without_fence,
        kinds=("leader-paused-at-point", "service-paused-past-session"),
        seed=20,
        breaks=("R43-rebalance-in-a-batch",),
    ),
    "inbox": Mutant(
        "a submission that is read again begins anew",
        without_inbox,
        kinds=(),
        seed=6,
        breaks=("submission-told-twice",),
    ),
    "reclaim-check": Mutant(
        "a place is free on a status, without proof",
        without_reclaim_check,
        kinds=(),
        seed=2,
        breaks=("R01-a-limit-met-exactly",),
    ),
    "gang-atomicity": Mutant(
        "a gang that does not fit gets what there is",
        without_gang_atomicity,
        kinds=(),
        seed=0,
        breaks=("R09-a-two-gangs",),
    ),
    "double-release": Mutant(
        "a release told again frees the next attempt",
        with_double_release,
        kinds=("node-cut", "site-cut", "gateway-away", "node-flapping"),
        seed=19,
        breaks=("release-told-again-later",),
    ),
    "late-receipts": Mutant(
        "the end of an earlier attempt ends the current one",
        without_late_refusal,
        kinds=("node-cut", "site-cut", "gateway-away", "agent-messages-held"),
        seed=65,
        breaks=("late-ends",),
    ),
    "final-end": Mutant(
        "a receipt after the end counts again",
        without_final_end,
        kinds=("node-cut", "site-cut", "gateway-away", "agent-messages-held"),
        seed=28,
        breaks=("R46-late-and-made-up-receipts",),
    ),
    "blindness": Mutant(
        "an observer that hears nobody takes all for lost",
        without_blindness,
        kinds=("gateway-away", "service-crash", "service-paused-past-session"),
        seed=28,
        breaks=("gateway-away-loses-nobody",),
    ),
    "commit-before-park": Mutant(
        "a record is committed before its dead letter",
        with_commit_before_park,
        kinds=("crash-while-parking",),
        seed=119,
        breaks=("killed-while-parking",),
    ),
    "manifest-last": Mutant(
        "a checkpoint shows before its parts",
        without_manifest_last,
        kinds=(),
        seed=0,
        breaks=("drain-resumes-elsewhere",),
    ),
    "double-charge": Mutant(
        "usage that is read again is charged again",
        with_double_charge,
        kinds=("redelivery", "rebalance", "records-duplicated"),
        seed=271,
        breaks=("ledger-reads-again",),
    ),
    "stale-wishes": Mutant(
        "agents follow wishes of earlier attempts and deciders",
        without_stale_refusal,
        kinds=("records-duplicated", "agent-messages-held", "agent-messages-reordered"),
        seed=299,
        breaks=("late-wish",),
    ),
    "exact-quota": Mutant(
        "a limit is tested in binary floating point",
        without_exact_quota,
        kinds=(),
        seed=10,
        breaks=("R01-a-limit-met-exactly",),
    ),
    "counted-request": Mutant(
        "a limit is tested without the request",
        without_counted_request,
        kinds=(),
        seed=0,
        breaks=("R23-the-request-counts",),
    ),
    "early-tombstone": Mutant(
        "desired state vanishes before its place is free",
        with_early_tombstone,
        kinds=("node-lost", "node-flapping"),
        seed=19,
        breaks=("wishes-outlive-their-attempt",),
    ),
    "offsets-before-state": Mutant(
        "offsets are committed before the state",
        with_offsets_before_state,
        kinds=("service-crash-at-point", "service-crash-between-steps"),
        seed=186,
        breaks=("killed-between-rounds",),
    ),
    "image-offset": Mutant(
        "a state image skips what came while it was made",
        with_image_newer_than_its_offset,
        kinds=("service-crash-at-point", "service-crash", "all-services-restart"),
        seed=6,
        breaks=("image-and-tail",),
    ),
    "archive-before-expiry": Mutant(
        "records expire that the archive did not take",
        without_archive_before_expiry,
        kinds=("log-expiry",),
        seed=14,
        breaks=("ledger-outlives-the-log",),
    ),
    "strict-numbers": Mutant(
        "numbers that are none, infinite or negative count as zero",
        without_strict_numbers,
        kinds=("hostile-submissions",),
        seed=3,
        breaks=("R04-hostile-numbers",),
    ),
    "kept-share": Mutant(
        "a share of a device is cut to whole devices",
        without_kept_share,
        kinds=(),
        seed=0,
        breaks=("R06-quarters",),
    ),
    "dropped-letters": Mutant(
        "bad inputs of the decider vanish",
        with_dropped_letters,
        kinds=("garbage",),
        seed=6,
        breaks=("R45-poison-records",),
    ),
    "one-generation": Mutant(
        "an attempt begins before the one before it is gone",
        without_one_generation,
        kinds=(),
        seed=264,
        breaks=("no-attempt-beside-what-is-left-of-the-last",),
    ),
    "cancel": Mutant(
        "a cancelled task is over while it runs",
        with_cancel_at_once,
        kinds=(),
        seed=0,
        breaks=("R50-a-cancel-crosses-allocate",),
    ),
    "core-price": Mutant(
        "a member without devices costs nothing",
        without_core_price,
        kinds=(),
        seed=0,
        breaks=("cores-have-a-price",),
    ),
    "loose-ids": Mutant(
        "any text is an id",
        with_loose_ids,
        kinds=("hostile-submissions",),
        seed=3,
        breaks=("R69-b-ids",),
    ),
    "kept-document": Mutant(
        "a document is tidied on its way",
        without_kept_document,
        kinds=(),
        seed=0,
        breaks=("R69-a-names",),
    ),
    "adoption": Mutant(
        "a task that waits for its node is given up with it",
        without_adoption,
        kinds=("node-cut", "site-cut", "node-lost", "node-flapping"),
        seed=79,
        breaks=("R38-a-pinned", "R38-c-adopted"),
    ),
    "told-again": Mutant(
        "an end that vanished on its way is never told again",
        without_telling_again,
        kinds=("agent-messages-dropped",),
        seed=18,
        breaks=("a-lost-end-is-told-again",),
    ),
    "soft-avoidance": Mutant(
        "a node where a start failed is avoided though there is no other",
        without_soft_avoidance,
        kinds=("failing-start", "hanging-start"),
        seed=372,
        breaks=("a-node-that-failed-once-is-better-than-none",),
    ),
    "exact-model": Mutant(
        "a model is matched by the beginning of its name",
        without_exact_model,
        seed=1,
        breaks=("R15-hopeless-tasks-evict-nobody",),
    ),
    "one-observer": Mutant(
        "every copy of an observer works, on a part of what nodes say",
        without_one_observer,
        kinds=("rebalance",),
        seed=474,
        breaks=("two-copies-hear-alone",),
    ),
    "tolerance": Mutant(
        "whoever is suspect is lost",
        without_tolerance,
        kinds=("node-cut", "site-cut", "agent-paused", "node-flapping"),
        breaks=("R39-a-short-outages",),
    ),
    "struck-copies": Mutant(
        "the catalogue keeps copies of data that are gone",
        without_struck_copies,
        kinds=("dataset-copy-dropped",),
        seed=483,
        breaks=("R61-a-dropped-copy", "R61-b-silent-copy"),
    ),
    "counted-once": Mutant(
        "a task that two inputs of a round speak of waits twice",
        without_counted_once,
        seed=96,
        breaks=("changed-before-it-was-first-placed",),
    ),
    "never-free": Mutant(
        "a site that can never hold a task counts as free at once",
        without_never_free,
        seed=121,
        breaks=("an-avoided-home-is-never-soon",),
    ),
    "growing-pause": Mutant(
        "the pause before the next attempt does not grow",
        without_growing_pause,
        breaks=("R41-b-retries-grow-apart",),
    ),
    "run-from-ready": Mutant(
        "a run counts from its launch, and its start is billed twice",
        without_run_from_ready,
        breaks=("a-pause-while-starting-bills-no-moment-twice",),
    ),
    "whole-return": Mutant(
        "shares of a device come back a little smaller",
        without_whole_return,
        seed=126,
        breaks=("R01-b-ten-tenths", "R01-c-thousand-rounds"),
    ),
}
