"""The forms of expectations. Adding one is one entry in its file and one row here."""

from __future__ import annotations

from typing import Final

from evenflow.core.errors import FieldRefused
from evenflow.sim.expectations import attempts, books, combined, counting, places, task_state
from evenflow.sim.expectations.form import Expect
from evenflow.sim.scenario.schema import Values

#: Forms by name, in the order in which they are tried: the more special ones first.
FORMS: Final[dict[str, Expect]] = {
    form.name: form
    for form in (
        combined.ANY_OF,
        combined.SAME,
        task_state.ALL,
        books.LEDGER,
        books.ESTIMATE,
        books.ALERT,
        counting.COUNT,
        places.TOTAL,
        places.QUEUE,
        places.DEVICE,
        places.COPIES,
        attempts.RESUMES,
        attempts.ATTEMPTS,
        attempts.VERIFIED,
        attempts.HOLDS,
        task_state.TASK,
        places.NODE,
    )
}


def recognise(entry: Values, path: str) -> str:
    """The name of the form that an expectation has. Raises FieldRefused when it has none."""
    keys = frozenset(str(key) for key in entry)
    for name, form in FORMS.items():
        if form.recognises(keys):
            return name
    raise FieldRefused(path, f"is no known expectation; it says {', '.join(sorted(keys)) or 'nothing'}")
