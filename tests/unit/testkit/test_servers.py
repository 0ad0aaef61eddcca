"""Finding, pinning and stopping servers, without any server."""

from __future__ import annotations

import os
import sys

import pytest

from evenflow.core.errors import Refused, Unavailable
from evenflow.platform.clock import SystemClock
from evenflow.testkit.servers import choosing
from evenflow.testkit.servers.addresses import HOST_VARIABLES, KINDS, Addresses, addresses_from
from evenflow.testkit.servers.artifacts import Artifact, check_files, digest_of, obtain
from evenflow.testkit.servers.choosing import choose
from evenflow.testkit.servers.command import main
from evenflow.testkit.servers.local import SERVERS, LocalServers, recorded, stop_recorded

ALL = {
    "EVENFLOW_TEST_KAFKA_URL": "kafka://k:1",
    "EVENFLOW_TEST_REDIS_URL": "redis://r:1/0",
    "EVENFLOW_TEST_REDIS_CLUSTER_URL": "redis+cluster://r:1,r:2",
    "EVENFLOW_TEST_MONGODB_URL": "mongodb://m:1/x",
    "EVENFLOW_TEST_S3_URL": "s3://b/p",
}
FOR_EVER = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]


def test_addresses_go_to_the_environment_and_come_back():
    """Proves that what `up` prints is what a test run reads, for every kind of server."""
    found = addresses_from(ALL)
    assert (found.missing, found.environment()) == ([], ALL)
    assert addresses_from({"EVENFLOW_TEST_KAFKA_URL": ""}).missing == list(KINDS)
    assert set(found.host_environment()) == {f"EVENFLOW_HOST_{n}" for n in ("LOG", "LIVE", "DOCUMENTS", "OBJECTS")}


def test_the_usual_name_of_a_replica_set_is_taken_too():
    """Proves that MONGODB_URI alone points the suites at a real replica set, and that our own name goes first."""
    found = addresses_from({"MONGODB_URI": "mongodb://a"})
    assert (found.urls, found.origin) == ({"documents": "mongodb://a"}, {"documents": "MONGODB_URI"})
    assert addresses_from({"MONGODB_URI": "mongodb://a", **ALL}).urls["documents"] == "mongodb://m:1/x"


def test_named_servers_are_used_and_nothing_is_started(tmp_path, monkeypatch):
    """Proves that a run whose servers are all named asks no engine and starts no process."""
    monkeypatch.setattr(choosing, "engine_answers", lambda: pytest.fail("asked"))
    chosen = choose(tmp_path, ALL, lambda _: None)
    chosen.close()
    assert chosen.addresses.environment() == ALL
    assert list(tmp_path.iterdir()) == []


def test_an_engine_is_asked_for_what_is_not_named(tmp_path, monkeypatch):
    """Proves the order: named addresses, the engine's, then local ones; what is named is never replaced."""
    ended, started = [], []

    class Engine:
        def __init__(self, root, say):
            pass

        def start(self):
            return Addresses({"kafka": "kafka://engine:1", "redis": "redis://engine:1"})

        def stop(self):
            ended.append("engine")

    monkeypatch.setattr(choosing, "engine_answers", lambda: True)

    def local(root, named, say):
        started.extend(named.missing)
        return named.joined(Addresses(dict.fromkeys(named.missing, "local"))), lambda _: ended.append("local")

    monkeypatch.setattr(choosing, "EngineServers", Engine)
    monkeypatch.setattr(choosing, "_local", local)
    chosen = choose(tmp_path, {"EVENFLOW_TEST_KAFKA_URL": "kafka://k:1"}, lambda _: None)
    assert started == ["redis-cluster", "documents", "objects"]
    assert (chosen.addresses.urls["kafka"], chosen.addresses.urls["redis"]) == ("kafka://k:1", "redis://engine:1")
    chosen.close()
    assert ended == ["engine", "local"]


def test_no_server_to_be_had_is_a_failure(tmp_path, monkeypatch):
    """Proves that neither engine nor local pins end in an error that says so, and nothing is left behind."""
    monkeypatch.setattr(choosing, "engine_answers", lambda: False)
    with pytest.raises(Refused, match="top of the source tree"):
        choose(tmp_path, {}, lambda _: None)


class Made(Artifact):
    name = "thing"
    material = "local/thing"
    programs = ("sh",)
    install = "install a shell"
    works = True

    def build(self, into, log):
        (into / "part").write_text("whole")
        if not self.works:
            raise Unavailable("cut short")


@pytest.fixture
def tree(tmp_path):
    pins = tmp_path / "tree" / "deploy" / "local" / "thing"
    pins.mkdir(parents=True)
    (pins / "pin").write_text("1")
    return tmp_path / "tree"


def test_an_artifact_is_made_once_and_anew_when_its_pins_change(tree, tmp_path):
    """Proves that the second look finds it, and that a changed pin is another artifact."""
    said = []
    first = obtain(Made(tree), tmp_path / "cache", said.append)
    assert obtain(Made(tree), tmp_path / "cache", said.append) == first
    assert len(said) == 2
    (tree / "deploy/local/thing/pin").write_text("2")
    assert obtain(Made(tree), tmp_path / "cache", said.append) != first
    assert len(said) == 4


def test_what_old_pins_made_is_not_kept_for_ever(tree, tmp_path):
    """Proves that the newest three of an artifact stay, that others are left alone."""
    other = tmp_path / "cache" / "thing-else-0123456789abcdef"
    other.mkdir(parents=True)
    made = []
    for pin in "12345":
        (tree / "deploy/local/thing/pin").write_text(pin)
        made.append(obtain(Made(tree), tmp_path / "cache", lambda _: None))
        os.utime(made[-1], (int(pin), int(pin)))
    assert [path.exists() for path in made] == [False, False, True, True, True]
    assert other.exists()


def test_a_build_that_was_cut_short_is_not_taken_for_a_whole_one(tree, tmp_path, monkeypatch):
    """Proves that a failed build leaves nothing that the next one would use."""
    monkeypatch.setattr(Made, "works", False)
    with pytest.raises(Unavailable, match="cut short"):
        obtain(Made(tree), tmp_path / "cache", lambda _: None)
    monkeypatch.setattr(Made, "works", True)
    said = []
    assert (obtain(Made(tree), tmp_path / "cache", said.append) / "part").read_text() == "whole"
    assert said


def test_a_missing_program_is_named_with_the_way_out(tree, tmp_path, monkeypatch):
    """Proves that a machine without a builder says what to install."""
    monkeypatch.setattr(Made, "programs", ("sh", "no-such-program"))
    with pytest.raises(Unavailable, match="thing needs no-such-program: install a shell"):
        obtain(Made(tree), tmp_path / "cache", lambda _: None)


def test_files_are_held_to_their_checksums(tmp_path):
    """Proves that a changed, a missing and an extra file are each refused by name."""
    folder, sums = tmp_path / "jars", tmp_path / "sums"
    folder.mkdir()
    (folder / "a.jar").write_bytes(b"a")
    sums.write_text(f"{digest_of(folder / 'a.jar')}  a.jar\n")
    check_files(folder, sums)
    for change, problem in (
        (lambda: (folder / "b.jar").write_bytes(b"b"), "b.jar is not pinned"),
        (lambda: (folder / "a.jar").write_bytes(b"x"), "a.jar has another checksum"),
        ((folder / "a.jar").unlink, "a.jar is missing"),
    ):
        change()
        with pytest.raises(Refused, match=problem):
            check_files(folder, sums)


def test_the_pinned_jars_are_the_pinned_release(pytestconfig):
    """Proves that project file and checksums name the same Kafka."""
    rows = (pytestconfig.rootpath / "deploy/local/kafka/jars.sha256").read_text(encoding="ascii")
    pom = (pytestconfig.rootpath / "deploy/local/kafka/pom.xml").read_text(encoding="utf-8")
    assert "<version>4.4.0</version>" in pom
    assert "kafka_2.13-4.4.0.jar" in rows
    assert "kafka-clients-4.4.0.jar" in rows


async def test_a_folder_without_servers_has_nothing_to_stop(tmp_path):
    """Proves that `down` twice, and `status` of nothing, say so and harm nothing."""
    assert recorded(tmp_path) == []
    assert await stop_recorded(tmp_path, SystemClock(), lambda _: None) == 0


def test_a_command_that_cannot_work_says_why_and_ends_with_one(tmp_path, monkeypatch, capsys):
    """Proves that every failure of the command is one line and an exit code."""
    monkeypatch.chdir(tmp_path)
    assert main(["up"]) == 1
    assert "start this from the top of the source tree" in capsys.readouterr().out
    assert main(["down"]) == 0
    assert main(["status"]) == 1


def test_every_kind_of_address_has_its_server(pytestconfig, tmp_path):
    """Proves that nothing the suites ask for is left out of the local set."""
    made = LocalServers(pytestconfig.rootpath, tmp_path, SystemClock(), lambda _: None, tied=True)
    assert {*KINDS, *HOST_VARIABLES} == made.servers.keys()
    assert [server.kind for server in SERVERS] == list(made.servers)
