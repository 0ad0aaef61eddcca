"""The verbs of the scenario format, one file each. Adding one is one file and one row here."""

from __future__ import annotations

from typing import Final

from evenflow.sim.verbs import (
    cancel,
    checkpoint,
    cut,
    dataset,
    deliver,
    device,
    join,
    link,
    node,
    policy,
    process,
    publish,
    queue,
    repeat,
    report,
    reprioritise,
    resize,
    service,
    settle,
    start,
    store,
    submit,
    telemetry,
    window,
)
from evenflow.sim.verbs.verb import Verb

#: Every verb by name, in the order of the documentation.
VERBS: Final[dict[str, Verb]] = {
    entry.name: entry
    for entry in (
        submit.VERB,
        cancel.VERB,
        reprioritise.VERB,
        resize.VERB,
        repeat.VERB,
        node.VERB,
        cut.VERB,
        join.VERB,
        link.VERB,
        start.VERB,
        process.VERB,
        device.VERB,
        telemetry.VERB,
        service.VERB,
        store.VERB,
        deliver.VERB,
        publish.VERB,
        report.VERB,
        dataset.VERB,
        checkpoint.VERB,
        window.VERB,
        queue.VERB,
        policy.VERB,
        settle.VERB,
    )
}
