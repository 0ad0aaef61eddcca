"""`evenflow dev`: everything in one process, on loopback, ready soon, small, gone when told."""

from __future__ import annotations

import signal
import socket

import pytest

READY_S_MAX = 5.0
BUSY_FACTOR = 4  # test machines run several tests at once
MEMORY_MIB_MAX = 400
STOP_S_MAX = 10.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_it_is_ready_soon_stays_small_and_stops_when_told(new_dev, number):
    """Proves start-up, memory with three sites and a load, and a clean end on both signals."""
    dev = new_dev()
    dev.start()
    assert dev.ready_s < READY_S_MAX * BUSY_FACTOR
    dev.until("three sites", lambda: len(dev.run("sites", "--json").json["items"]) == 3)
    dev.until("work", lambda: dev.run("list", "--state", "running,succeeded", "--json").json["items"])
    print(f"ready in {dev.ready_s:.1f} s; never more than {dev.memory_mib():.0f} MiB while the load runs")
    assert dev.memory_mib() < MEMORY_MIB_MAX
    code, took_s = dev.stop(number)
    assert (code, took_s < STOP_S_MAX) == (0, True)
    assert (dev.folder / "dev.err").read_text() == ""


def test_a_taken_port_is_said_at_once(command):
    """Proves that dev ends with a message that names the port instead of serving half."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = command("dev", "--port", port, "--gateway-port", "0")
    assert (done.code, port in done.err, "another port" in done.err) == (2, True, True)


def test_a_folder_in_use_is_refused(new_dev, command, tmp_path):
    """Proves that two processes never write one log."""
    dev = new_dev("--data", str(tmp_path / "kept"), "--no-load", "--no-agents")
    dev.start()
    done = command("dev", "--port", "0", "--gateway-port", "0", "--data", str(tmp_path / "kept"))
    assert done.code == 2, done
    assert "Traceback" not in done.err
