"""`python -m evenflow.events.schema`: its exit codes and what it prints."""

from evenflow.events.schema.__main__ import run
from evenflow.testkit import examples


def test_the_command_writes_checks_and_names_what_drifted(tmp_path, capsys):
    """Proves the whole turn: nothing there, written, in order, edited, written again."""
    folder = str(tmp_path)
    assert run(["check", folder]) == 1
    assert "docs/events.md: is missing" in capsys.readouterr().err
    assert run(["write", folder]) == 0
    assert "schemas/asyncapi.json" in capsys.readouterr().out.splitlines()
    examples.write(tmp_path)
    assert run(["check", folder]) == 0
    (tmp_path / "docs/events.md").write_text("")
    (tmp_path / "schemas/examples/task.ended.json").write_text("{}")
    assert run(["check", folder]) == 1
    said = capsys.readouterr().err
    assert "docs/events.md: differs" in said
    assert "schemas/examples/task.ended.json: tenant: Field required" in said
    assert run(["write", folder]) == 0
    assert capsys.readouterr().out.splitlines() == ["docs/events.md"]
    assert examples.write(tmp_path) == ["schemas/examples/task.ended.json"]


def test_the_command_refuses_a_change_that_breaks(tmp_path, capsys):
    """Proves that writing over a released type ends with code 1 and the way out."""
    run(["write", str(tmp_path)])
    path = tmp_path / "schemas/json/task.ended.v1.schema.json"
    path.write_text(path.read_text().replace('"failed",', '"failed", "vanished",'))
    capsys.readouterr()
    assert run(["write", str(tmp_path)]) == 1
    assert "loses vanished; give TaskEnded a new MAJOR" in capsys.readouterr().err
