"""The pages written from the registry and the closed lists, and the command that writes them."""

import pytest

from evenflow.core.lifecycle.alerts import Alert
from evenflow.core.lifecycle.event_types import EventType
from evenflow.core.lifecycle.task import TaskState
from evenflow.events.schema.__main__ import run
from evenflow.events.schema.overview import closed_lists, closed_lists_page, events_page
from evenflow.events.streams import STREAMS


def test_every_stream_and_every_type_stands_on_the_page():
    """Proves that a reader finds key, writer and readers of whatever he meets on the log."""
    page = events_page()
    for stream in STREAMS:
        assert f"[`{stream.name}`]" in page
        assert all(f"`{name}`" in page for name in stream.carries)


def test_every_word_of_every_closed_list_stands_on_the_page():
    """Proves that the page is all of the lists, the state tables among them."""
    page = closed_lists_page()
    lists = closed_lists()
    for word in (*EventType, *Alert, *TaskState):
        assert f"`{word}`" in page
    assert {"Alert", "AttemptEnd", "Cause", "EventType", "Reason", "TaskState", "DocumentKind"} <= lists.keys()
    assert "| `running` | `queued`, `stopping`, `succeeded`, `failed`, `cancelled` |" in page
    assert "| `succeeded` | nothing: it is final |" in page


@pytest.mark.parametrize("arguments", [[], ["write"], ["look", "."], ["check", "/nowhere/at/all"], ["check", ".", "x"]])
def test_a_wrong_use_of_the_command_says_how(arguments, capsys):
    """Proves that a typing error writes nothing and ends with code 2."""
    assert run(arguments) == 2
    assert "write|check" in capsys.readouterr().err
