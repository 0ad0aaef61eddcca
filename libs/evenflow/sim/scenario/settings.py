"""Names and kinds of the service settings that a scenario may set."""

from __future__ import annotations

from typing import Final

from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.policy import setting_of_policy
from evenflow.sim.scenario.schema import Field, Form


def _seconds(name: str, about: str) -> Field:
    return Field(name, kinds.SECONDS, about)


#: Every setting by name. Values are kept in milliseconds where the name ends in `_s`.
SETTINGS: Final = Form(
    "settings",
    "any service setting",
    (
        _seconds("heartbeat_s", "period of a node's heartbeat"),
        _seconds("beacon_s", "period of the observer's own beacon"),
        setting_of_policy("silence_tolerance_s", "silence after which a node is lost"),
        _seconds("suspect_after_s", "silence after which a node is suspect"),
        _seconds("judge_period_s", "how often silence is judged"),
        setting_of_policy("hold_off_s", "steadiness asked of a node that returned"),
        setting_of_policy("blind_max_s", "longest freeze of expiry while the observer is blind"),
        _seconds("stop_grace_s", "time that a stopped task has to end by itself"),
        _seconds("start_timeout_s", "time after which a start that hangs has failed"),
        setting_of_policy("starvation_s", "wait after which nothing may overtake"),
        setting_of_policy("ageing_s", "wait that is worth one priority point"),
        setting_of_policy("half_life_s", "half-life of past use"),
        setting_of_policy("minimum_run_s", "run time before a task may be preempted"),
        setting_of_policy("alert_after_s", "age of the newest checkpoint copy that alerts"),
        setting_of_policy("start_failures_quarantine", "failed starts in a row that quarantine a node"),
        _seconds("session_timeout_s", "silence after which a consumer leaves its group"),
        _seconds("object_store_s", "longest time that the object store takes before and after each effect"),
        Field("through_console", kinds.BOOLEAN, "tasks are submitted to the console's API, not straight to the log"),
        Field("ended_task_count_max", kinds.integer(10, 1_000_000), "ended tasks that the console keeps in memory"),
        _seconds("retention_s", "how long the log keeps rounds and the ledger; what expires is in the archive"),
        _seconds("round_period_s", "longest time between two placement rounds"),
        _seconds("gather_s", "how long placement waits for more input before a round"),
        _seconds("round_limit_s", "longest time that one round may take"),
        _seconds("snapshot_period_s", "period of placement's state images"),
        _seconds("reasons_period_s", "how often waiting tasks are explained again"),
        _seconds("prune_period_s", "how often checkpoints that nobody needs are removed"),
        _seconds("archive_period_s", "how often ended tasks are moved to the documents"),
        _seconds("declare_period_s", "how often link documents are looked at and estimates age"),
        _seconds("probe_period_s", "period of link probes"),
        _seconds("flush_period_s", "period of the live load frames"),
        _seconds("task_id_retention_s", "how long an ended task's id is remembered"),
        _seconds("poll_wait_s", "longest wait of an agent's request for desired state"),
        _seconds("report_period_s", "period of queue reports"),
        _seconds("receipt_gather_s", "time that an agent waits for more receipts before it sends them"),
        _seconds("progress_period_s", "period of progress receipts"),
    ),
)
