"""The command line without a server: exit codes, words for numbers, what is printed, what is loaded."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evenflow.cli import exits, main, output, words
from evenflow.cli.commands.letters import read_place
from evenflow.cli.commands.submit import told
from evenflow.cli.registry import COMMANDS, GROUPS
from evenflow.client.api import Client
from evenflow.client.errors import Answered, Unreachable
from evenflow.core.errors import Conflict, Ended, FieldRefused, Refused, Unavailable

ROOT = Path(__file__).resolve().parents[3]
LIGHT = ("evenflow.cli", "evenflow.core", "typer", *sys.stdlib_module_names)


def ran(*arguments: str) -> int:
    """A command's exit code."""
    try:
        main.run(list(arguments))
    except SystemExit as left:
        return int(left.code or 0)
    return 0


@pytest.fixture
def answers(monkeypatch):
    """Calls get what the test says instead of a server's answer."""
    given: dict[str, Any] = {}

    def send(_client: Client, call: Any) -> Any:
        found = given[call.path]
        if isinstance(found, Exception):
            raise found
        return call.read(found)

    monkeypatch.setattr(Client, "send", send)
    return given


ROW = {
    "tenant": "default", "task": "t1", "name": "", "queue": "q", "state": "queued", "unreachable": False,
    "decided": True, "priority": 50, "members": 1, "submitted_ms": 0, "since_ms": 0, "attempt": 0, "failures": 0,
    "nodes": [], "sites": [],
    "reasons": [{"reason": "cpu", "dimension": "cpu", "needed": "8 cores", "available": "4 cores", "nodes": 3}],
    "position": 1, "progress_ms": 0, "end": "", "cause": "", "message": "", "path": "", "cost_micro": 0,
    "permalink": "/api/v1/tasks/t1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Answered(404, {"code": "not-found"}), exits.ABSENT),
        (Answered(410, {}), exits.ABSENT),
        (Answered(422, {"code": "planned"}), exits.PLANNED),
        (Answered(422, {"code": "invalid"}), exits.WRONG),
        (Answered(409, {}), exits.WRONG),
        (Answered(413, {}), exits.WRONG),
        (Answered(503, {}), exits.UNREACHABLE),
        (Answered(500, {}), exits.FAILED),
        (Unreachable("no"), exits.UNREACHABLE),
        (Unavailable("no"), exits.UNREACHABLE),
        (FieldRefused("a", "b"), exits.WRONG),
        (Conflict("c"), exits.WRONG),
        (Refused("r"), exits.WRONG),
        (Ended("e", exit_code=9), exits.FAILED),
        (exits.unavailable("it"), exits.PLANNED),
    ],
)
def test_every_error_has_its_documented_exit_code(error, code):
    """Proves the table of exit codes."""
    assert exits.explained(error).exit_code == code


def test_the_api_says_what_to_do_and_so_does_the_command(answers, capsys):
    """Proves that path, problem and way out reach the user, as text and as JSON."""
    body = {"code": "invalid", "path": "x", "problem": "is\nwrong", "way_out": "mend it"}
    answers["/api/v1/tasks"] = Answered(422, body)
    assert ran("list") == exits.WRONG
    assert capsys.readouterr().err == "error: x: is\\nwrong\n  mend it\n"
    assert ran("list", "--json") == exits.WRONG
    assert json.loads(capsys.readouterr().err) == body


def test_json_is_the_servers_own_answer(answers, capsys):
    """Proves that -o json adds nothing and loses nothing, fields of a newer server included."""
    answer = {"items": [{**ROW, "a_newer_field": 1}], "next": "", "as_of_ms": 5}
    answers["/api/v1/tasks"] = answer
    assert ran("list", "-o", "json") == exits.DONE
    assert json.loads(capsys.readouterr().out) == answer


def test_a_table_shows_why_a_task_waits(answers, capsys):
    """Proves that the list carries each waiting task's blocker with its numbers."""
    answers["/api/v1/tasks"] = {"items": [ROW], "next": "7.default/t1", "as_of_ms": 5}
    assert ran("list") == exits.DONE
    shown = capsys.readouterr().out
    assert "cpu: needs 8 cores, 4 cores there [3 nodes]" in shown
    assert "evenflow list --after 7.default/t1" in shown


def test_names_from_elsewhere_cannot_steer_the_terminal(answers, capsys):
    """Proves that control characters and turned writing are printed as escapes."""
    answers["/api/v1/tasks"] = {"items": [{**ROW, "task": "t\x1b[2J\u202e"}], "next": "", "as_of_ms": 5}
    ran("list")
    shown = capsys.readouterr().out
    assert "\x1b[2J" not in shown
    assert "\\x1b[2J\\u202e" in shown


def test_a_broken_ledger_is_a_failure(answers, capsys):
    """Proves that a script sees by the exit code that a chain does not hold."""
    sums = {"line_count": 0, "amount_micro": 0, "device_milli_ms": 0, "bytes": 0, "by_kind": {}}
    book = {"queue": "q", "verified": False, "broken_at": 3, "broken_why": "line 3 is missing"}
    answers["/api/v1/ledger"] = {"items": [], "sums": sums, "queues": [book], "verified": False}
    assert ran("ledger") == exits.FAILED
    assert "line 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "words_"),
    [
        ({"status": None}, "no decision yet"),
        ({"status": {**ROW, "decided": False}}, "no decision yet"),
        ({"status": ROW}, "queued: cpu"),
        ({"status": {**ROW, "state": "starting", "nodes": ["n1"]}}, "starting on n1"),
        ({"known": True, "status": {**ROW, "state": "succeeded"}}, "was submitted before"),
    ],
)
def test_a_submission_is_told_in_words(answer, words_):
    """Proves that every outcome of a submission reads differently and ends with where to look."""
    lines = told({"task": "t1", "known": False, "permalink": "/p", **answer}, "http://h")
    assert words_ in lines[0]
    assert lines[1] == "  http://h/p"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_500, "1.5 s"),
        (61_000, "1 m 1 s"),
        (3_661_000, "1 h 1 m"),
        (90_000_000, "1 d 1 h"),
    ],
)
def test_durations_are_told_in_two_units(given, shown):
    """Proves the words for durations."""
    assert words.span(given) == shown


def test_money_and_cores_stay_exact():
    """Proves that figures which are paid for are never rounded for show."""
    assert [words.money(1), words.money(1_250_000, "CNY"), words.cores(300)] == ["0.000001", "1.25 CNY", "0.3"]
    assert [words.size(1023), words.size(2**31), words.rate(1_500_000)] == ["1023 B", "2.0 GiB", "1.5 Mbit/s"]


@pytest.mark.parametrize("place", ["", "x", "a/b", "a/0", "a/0/-1", "a/0/x", "/0/1", "a/0/1/2", "a/٣/1"])
def test_a_wrong_place_is_refused(place):
    """Proves that a letter's place is read strictly."""
    with pytest.raises(exits.Stop):
        read_place(place)
    assert read_place("evenflow.tasks.v1/0/17") == ("evenflow.tasks.v1", 0, 17)


def test_no_module_of_the_command_line_loads_a_heavy_library_at_once():
    """Proves that help is quick: clients, servers and tables are loaded where they are used."""
    heavy = []
    for path in sorted((ROOT / "libs/evenflow/cli").rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy += [f"{path.name}: {name}" for name in names if not name.startswith(LIGHT)]
    assert heavy == []


def test_every_command_has_its_help_and_its_place_in_the_documentation():
    """Proves that no command is secret."""
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    missing = [name for name in (*COMMANDS, *GROUPS) if f"evenflow {name}" not in page]
    silent = [name for name, command in COMMANDS.items() if not (command.__doc__ or "").strip()]
    assert (missing, silent) == ([], [])


def test_states_are_told_by_sign_and_word_not_by_colour_alone():
    """Proves that every state has a sign of its own family."""
    assert str(output.state_cell("running")) == "● running"
    assert str(output.state_cell("unheard-of")) == "  unheard-of"
