"""A real program on a real agent, both started from the command line, both killed with -9: the work goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

STEPS = 50
WORK = f"""
import os, time
folder, resume = os.environ["EVENFLOW_CHECKPOINT_DIR"], os.environ.get("EVENFLOW_RESUME_DIR")
step = int(open(resume + "/count").read()) if resume else 0
print("begins at", step, "in group", os.getpgid(0), flush=True)
while step < {STEPS}:
    time.sleep(0.1)
    step += 1
    with open(folder + "/.count", "w") as file:
        file.write(str(step))
    os.rename(folder + "/.count", folder + "/count")
print("ends at", step, flush=True)
"""
TASK = {
    "id": "real",
    "command": [sys.executable, "-c", WORK],
    "resources": {"cpu": 1, "memory": "64MiB"},
    "checkpoint": {"every_s": 1, "size": "1kB"},
}


def test_work_goes_on_from_its_checkpoint_after_agent_and_program_were_killed(new_dev, new_agent):
    """Proves the whole chain for a real program: run, output, checkpoint, kill -9 of both, resume, one bill."""
    dev = new_dev("--no-agents")
    dev.start()
    first = new_agent(dev, "machine")
    dev.until("the node", lambda: dev.run("nodes", "--json").json["items"])
    assert dev.run("submit", "-", given=json.dumps(TASK).encode()).code == 0

    def status():
        return dev.run("status", "real", "--json").json

    dev.until("a checkpoint", lambda: any(row.get("state") == "verified" for row in status()["checkpoints"]))
    output = dev.until("output", lambda: dev.run("logs", "real").out)
    group = int(re.findall(r"begins at 0 in group (\d+)", output)[0])
    first.kill()
    os.killpg(group, signal.SIGKILL)
    new_agent(dev, "machine")
    dev.until("the end", lambda: status()["state"] == "succeeded")
    last = ("succeeded", "reclaimed")  # the console reads decisions and receipts apart, so the last receipt is awaited
    dev.until("the last receipt", lambda: status()["attempts"][1]["members"][0]["state"] in last)

    found = status()
    assert [attempt["attempt"] for attempt in found["attempts"]] == [1, 2]
    resumed_ms = found["attempts"][1]["members"][0]["resumed_progress_ms"]
    assert resumed_ms > 0
    again = dev.until("output", lambda: dev.run("logs", "real", "--attempt", "2").out)
    begins = int(re.findall(r"begins at (\d+) in group", again)[0])
    assert 0 < begins < STEPS
    assert f"ends at {STEPS}" in dev.run("logs", "real", "-f").out

    ledger = dev.until("the bill", lambda: bill(dev, 2))
    work = sorted((row["attempt"], row["duration_ms"]) for row in ledger["items"] if row["kind"] == "work")
    assert [attempt for attempt, _ in work] == [1, 2]
    assert ledger["verified"]
    assert sum(duration for _, duration in work) < 3 * STEPS * 100


def bill(dev, works: int):
    """The task's ledger once it holds as many work lines."""
    found = dev.run("ledger", "--task", "real", "--json").json
    return found if [row["kind"] for row in found["items"]].count("work") >= works else None
