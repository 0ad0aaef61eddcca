"""One contract for every backend of a port: collected for all, nothing left out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from evenflow.testkit.servers.contract import Census, different


def test_every_backend_of_every_port_has_the_same_tests(pytestconfig):
    """Proves that no suite leaves a test out for one backend: what is collected differs in the backend alone."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "evenflow.testkit.servers.contract", "--collect"]
    ended = subprocess.run(
        command, cwd=pytestconfig.rootpath, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split()[:2] for line in ended.stdout.splitlines()]
    servers = ["cluster kafka", "documents mongodb", "live redis", "live redis-cluster", "objects s3"]
    assert [server for server in servers if server.split() not in rows] == []


def test_a_test_that_one_backend_lacks_is_found():
    """Proves that the comparison can fail, by name, and that a port with one backend compares nothing."""
    same = [("log", "file", "a"), ("log", "kafka", "a")]
    assert different(same) == []
    assert different([*same, ("log", "file", "b")]) == ["log: kafka does not run b"]
    assert different(same[:1]) == ["log: only file runs its tests, so nothing is compared"]


@pytest.mark.parametrize("outcome", ["skipped", "xfailed", "failed", None])
def test_what_was_left_out_on_one_backend_is_a_problem(outcome):
    """Proves that a test which ran nowhere else than on paper is named."""
    census = Census()
    census.places = {"t[file]": ("log", "file", "t"), "t[kafka]": ("log", "kafka", "t")}
    census.outcomes = {"t[file]": "passed", "t[kafka]": "passed"}
    assert census.problems(ran=True) == []
    census.outcomes["t[kafka]"] = outcome
    if outcome is None:
        del census.outcomes["t[kafka]"]
    assert census.problems(ran=True) == [f"t[kafka]: {outcome or 'not run'}"]
    assert census.problems(ran=False) == []
