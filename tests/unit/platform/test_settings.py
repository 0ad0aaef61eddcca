"""Settings: four sources in one order, limits on every number, secrets never in sight, errors that help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr, ValidationError

from evenflow.core.errors import FieldRefused
from evenflow.platform.settings import Settings, load_settings, read_table, shown

Ratio = Annotated[float, Field(ge=0, le=1)]


class Inner(Settings):
    """A table inside."""

    depth_count: int = Field(default=2, ge=1, le=5)


class Probing(Settings):
    """Settings of a made-up service."""

    period_ms: int = Field(default=1000, ge=10, le=60_000)
    share: Ratio = 0.5
    sizes: tuple[Annotated[int, Field(ge=1, le=9)], ...] = ()
    limit: Annotated[int, Field(ge=0, le=9)] | None = None
    name: str = "probe"
    quiet: bool = False
    inner: Inner = Inner()
    password: SecretStr = SecretStr("")


def _load(
    tmp_path: Path, text: str | None = None, suffix: str = ".yaml", overrides: Any = None, **variables: Any
) -> Probing:
    file = None
    if text is not None:
        file = tmp_path / f"settings{suffix}"
        file.write_text(text)
    environment = {f"EVENFLOW_LINK_PROBE_{name}": value for name, value in variables.items()}
    return load_settings(Probing, "link-probe", file=file, environment=environment, overrides=overrides)


def test_each_source_overrides_the_one_before(tmp_path: Path) -> None:
    """Defaults, file, environment, overrides."""
    assert _load(tmp_path).period_ms == 1000
    assert _load(tmp_path, "period_ms: 20").period_ms == 20
    assert _load(tmp_path, "period_ms: 20\nname: file", PERIOD_MS="30").period_ms == 30
    settings = _load(tmp_path, "period_ms: 20\nname: file", overrides={"period_ms": 40}, PERIOD_MS="30")
    assert (settings.period_ms, settings.name) == (40, "file")


def test_every_kind_of_value_can_come_from_the_environment(tmp_path: Path) -> None:
    """Lists and tables as JSON; text that begins like JSON stays text."""
    settings = _load(
        tmp_path, SHARE="0.25", SIZES="[1, 2]", LIMIT="3", NAME="[x", QUIET="true", INNER='{"depth_count": 4}'
    )
    assert settings == Probing(share=0.25, sizes=(1, 2), limit=3, name="[x", quiet=True, inner=Inner(depth_count=4))


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("period_ms: 20", ".yaml"),
        ("link-probe:\n  period_ms: 20\nplacement:\n  other: 1\n", ".yml"),
        ("period_ms = 20", ".toml"),
        ('["link-probe"]\nperiod_ms = 20\n[placement]\nother = 1\n', ".toml"),
    ],
)
def test_a_file_holds_one_service_or_several(tmp_path: Path, text: str, suffix: str) -> None:
    """In YAML or TOML."""
    assert _load(tmp_path, text, suffix).period_ms == 20


@pytest.mark.parametrize("text", ["", "placement:\n  other: 1\n"])
def test_a_file_without_this_service_changes_nothing(tmp_path: Path, text: str) -> None:
    """Empty, or with other services only."""
    assert _load(tmp_path, text) == Probing()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PERIOD_MS": "5"}, r"^period_ms: .*greater than or equal to 10 \(from EVENFLOW_LINK_PROBE_PERIOD_MS\)$"),
        ({"PERIOD_MS": "x"}, r"^period_ms: .*integer"),
        ({"PERIOD_MS": "1.5"}, r"^period_ms: "),
        ({"SHARE": "nan"}, r"^share: "),
        ({"SIZES": "[1, 10]"}, r"^sizes\.1: .*less than or equal to 9"),
        ({"SIZES": "[1,"}, r"^sizes: .*tuple"),
        ({"INNER": '{"depth_count": 9}'}, r"^inner\.depth_count: "),
        ({"PERIOD": "1"}, r"did you mean EVENFLOW_LINK_PROBE_PERIOD_MS\?"),
        ({"NAME_FILE": "/x"}, r"^EVENFLOW_LINK_PROBE_NAME_FILE: is no setting"),
        ({"PERIOD_MS": "5", "LIMIT": "99"}, r"; 1 more$"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    """Field, reason, source; a near name for a slip."""
    with pytest.raises(FieldRefused, match=message):
        _load(tmp_path, **variables)


def test_variables_of_other_services_and_of_tasks_are_not_read(tmp_path: Path) -> None:
    """A prefix is a whole service's name, and a task's folders are no settings."""
    environment = {"EVENFLOW_PLACEMENT_X": "1", "EVENFLOW_CHECKPOINT_DIR": "/c", "PATH": "/bin"}
    assert load_settings(Inner, "link", environment=environment) == Inner()
    assert load_settings(Inner, "checkpoint", environment=environment) == Inner()


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("periodms: 20", ".yaml", r"^periodms: is no setting; did you mean period_ms\? \(from .*settings\.yaml\)$"),
        ("period_ms: 1\nperiod_ms: 20", ".yaml", "stands twice"),
        ("inner: &a {depth_count: 1}\n", ".yaml", "anchors and aliases"),
        ("inner: {depth_count: 1}\nsizes: *a\n", ".yaml", "anchors and aliases"),
        ("name: !!python/object:os.system x", ".yaml", "can't be read"),
        ("- 1", ".yaml", "must hold fields by name"),
        ("1: 2", ".yaml", "must hold fields by name"),
        ("a: [", ".yaml", "can't be read"),
        ("[" * 1200, ".yaml", "can't be read"),
        ("a = ", ".toml", "can't be read"),
        ("{}", ".json", "must end in"),
        ("name: " + "x" * 2**20, ".yaml", "is larger than"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, suffix: str, message: str) -> None:
    """Nothing is guessed and nothing is run."""
    with pytest.raises(FieldRefused, match=message):
        _load(tmp_path, text, suffix)


def test_an_absent_or_binary_file_is_named(tmp_path: Path) -> None:
    """A file that was asked for must be there."""
    with pytest.raises(FieldRefused, match=r"can't be read: No such file"):
        load_settings(Probing, "x", file=tmp_path / "none.yaml", environment={})
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(FieldRefused, match=r"can't be read"):
        load_settings(Probing, "x", file=tmp_path / "b.toml", environment={})


def test_a_secret_comes_from_the_environment_or_a_file_of_its_own(tmp_path: Path) -> None:
    """Directly, by a path in the environment, or by a path in the settings file; the direct value wins."""
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    for settings in (
        _load(tmp_path, PASSWORD="hunter2"),
        _load(tmp_path, PASSWORD_FILE=str(secret)),
        _load(tmp_path, f"password_file: {secret}"),
        _load(tmp_path, PASSWORD="hunter2", PASSWORD_FILE="/none"),
    ):
        assert settings.password.get_secret_value() == "hunter2"
        assert "hunter2" not in f"{settings!r} {settings} {shown(settings)} {settings.model_dump_json()}"


def test_a_secret_in_a_settings_file_is_refused_without_showing_it(tmp_path: Path) -> None:
    """With both ways out."""
    with pytest.raises(FieldRefused, match=r"password_file: PATH, or set EVENFLOW_LINK_PROBE_PASSWORD") as caught:
        _load(tmp_path, "password: hunter2")
    assert "hunter2" not in str(caught.value)


def test_a_secrets_file_that_cant_be_read_is_named(tmp_path: Path) -> None:
    """Absent, not text, too large."""
    with pytest.raises(FieldRefused, match=r"^password: can't read its file"):
        _load(tmp_path, PASSWORD_FILE=str(tmp_path / "none"))
    secret = tmp_path / "secret"
    for content, message in ((b"\xff", "not UTF-8"), (b"x" * 70_000, "larger than")):
        secret.write_bytes(content)
        with pytest.raises(FieldRefused, match=message):
            _load(tmp_path, PASSWORD_FILE=str(secret))


def test_settings_are_frozen_and_changed_copies_are_checked() -> None:
    """Nobody changes a running service's settings, and a copy obeys the same limits."""
    settings = Probing()
    with pytest.raises(ValidationError):
        settings.period_ms = 5
    assert settings.with_changes(period_ms=20).period_ms == 20
    with pytest.raises(FieldRefused, match=r"^period_ms: "):
        settings.with_changes(period_ms=5)
    with pytest.raises(FieldRefused, match=r"^periodms: "):
        settings.with_changes(periodms=20)


@pytest.mark.parametrize(
    "annotation", [int, float, list[int], dict[str, float], int | None, Annotated[int, Field(ge=1)]]
)
def test_a_number_without_limits_cant_be_defined(annotation: Any) -> None:
    """The mistake shows when the class is made, naming the field."""
    with pytest.raises(TypeError, match=r"Loose\.number needs limits"):
        type("Loose", (Settings,), {"__annotations__": {"number": annotation}, "__module__": __name__})


@pytest.mark.parametrize("lines", ['a: "{}', "a: {}\n   b: 1", "a: b\n  a: {}", "- {}: [", "a: &{} 1", "{}: b: c"])
def test_a_broken_file_is_refused_without_its_lines(tmp_path: Path, lines: str) -> None:
    """Proves that a secret which somebody wrote into a file that can't be read is not printed with the reason."""
    (tmp_path / "s.yaml").write_text("host:\n  " + lines.format("hush-hush-hush") + "\n")
    with pytest.raises(FieldRefused) as refusal:
        read_table(tmp_path / "s.yaml")
    assert "hush" not in f"{refusal.value.message} {refusal.value.__cause__}"
