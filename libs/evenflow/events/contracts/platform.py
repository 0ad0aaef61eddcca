"""What any service may state: alerts, and records that could not be handled."""

from __future__ import annotations

from typing import ClassVar

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.event_types import EventType
from evenflow.events.contract import Contract, Count, Text


class AlertBody(Contract):
    """An alert about one subject; keyed `name/subject`."""

    name: Alert
    subject: Text
    message: Text = ""
    at_ms: Count


class AlertRaised(AlertBody):
    """Raised once."""

    TYPE: ClassVar = EventType.ALERT_RAISED


class AlertCleared(AlertBody):
    """Cleared once."""

    TYPE: ClassVar = EventType.ALERT_CLEARED


class AlertAcknowledged(AlertBody):
    """Somebody looks after it."""

    TYPE: ClassVar = EventType.ALERT_ACKNOWLEDGED
    who: Text


class RecordParked(Contract):
    """A dead letter's note. On `<topic>.dlq` the value is the record's exact bytes and these fields are headers.

    Headers: x-dlq-origin (topic/partition/offset), x-dlq-error (code: message), x-dlq-service, x-dlq-at-ms, and the
    original headers as hexadecimal pairs in x-dlq-headers, so that a retry restores them exactly.
    """

    TYPE: ClassVar = EventType.RECORD_PARKED
    origin: Text
    service: Text
    code: Text
    problem: Text
    at_ms: Count
