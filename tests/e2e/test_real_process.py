"""A real program under real agents: it streams its output, outlives its agent, and resumes elsewhere when both die."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from typing import Any

import pytest

from evenflow.agent.executors.process_table import entry_of

#: Counts to `steps`, a tenth of a second each, and keeps how far it came: write aside, then rename.
PROGRAM = """
import json, os, sys, time
saves, resume = os.environ["EVENFLOW_CHECKPOINT_DIR"], os.environ.get("EVENFLOW_RESUME_DIR")
done = json.load(open(os.path.join(resume, "progress.json")))["done"] if resume else 0
print(f"attempt {os.environ['EVENFLOW_ATTEMPT']} begins at {done} in group {os.getpgrp()}", flush=True)
for done in range(done + 1, int(sys.argv[1]) + 1):
    time.sleep(0.1)
    if done % 10 == 0:
        with open(os.path.join(saves, ".progress"), "w") as aside:
            json.dump({"done": done}, aside)
        os.rename(os.path.join(saves, ".progress"), os.path.join(saves, "progress.json"))
    print(f"step {done}", flush=True)
print("all done", flush=True)
"""
#: A silent node is lost after four seconds instead of thirty.
IMPATIENT = {
    "EVENFLOW_GATEWAY_HEARTBEAT_MS": "500",
    "EVENFLOW_INVENTORY_HEARTBEAT_PERIOD_MS": "500",
    "EVENFLOW_INVENTORY_SUSPECT_AFTER_MS": "2000",
    "EVENFLOW_INVENTORY_SILENCE_TOLERANCE_MS": "4000",
    "EVENFLOW_INVENTORY_HOLD_OFF_MS": "0",
}


@pytest.fixture
def join(processes, folder):
    """Start (or start again) the agent of a node at a site of its own; it has two cores at 3.60 an hour each."""

    def start(dev: Any, name: str) -> Any:
        document = folder / f"{name}.json"
        document.write_text(json.dumps({"id": name, "site": f"site-{name}", "cpu": 2, "cpu_price_per_hour": "3.60"}))
        return processes.start(
            "agent", "--url", dev.gateway, "--token", dev.token, "--document", str(document),
            "--data", str(folder / f"agent-{name}"), name=f"agent-{name}",
        )  # fmt: skip

    return start


def _submit(processes: Any, folder: Any, dev: Any, steps: int, **more: Any) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    task = {"id": "count", "command": [sys.executable, str(program), str(steps)], "resources": {"cpu": 1}, **more}
    file = folder / "task.json"
    file.write_text(json.dumps(task))
    processes.run("submit", str(file), "--url", dev.console)


def _group(text: str, attempt: int) -> int:
    """The process group that the program said it runs in."""
    found = re.search(rf"attempt {attempt} begins at \d+ in group (\d+)", text)
    return int(found[1]) if found else 0


def _reached(node: str, reach: str) -> Any:
    def look(dev: Any) -> bool:
        return any(row["node"] == node and row["reach"] == reach for row in dev.get("/api/v1/nodes")["items"])

    return look


def _ledger(processes: Any, dev: Any) -> dict[tuple[int, str], dict[str, Any]]:
    """The task's lines by attempt and kind; one line each."""
    rows = processes.json("ledger", "--task", "count", "--url", dev.console)["items"]
    found = {(row["attempt"], row["kind"]): row for row in rows}
    assert len(found) == len(rows), rows
    return found


def _told_whole(row):
    """Whether bill and last receipt of the second attempt have both reached the console, which reads them apart."""
    return row["cost_micro"] and row["attempts"][1]["members"][0]["state"] in ("succeeded", "reclaimed")


def test_a_task_outlives_the_death_of_its_node_and_is_billed_once(processes, folder, join):
    """Proves loss, resume from the last checkpoint on another node, one bill for each span, and the late reclaim."""
    dev = processes.dev("--no-agents", "--no-load", **IMPATIENT)
    first = join(dev, "n1")
    processes.until("n1 joined", lambda: _reached("n1", "ok")(dev))
    _submit(processes, folder, dev, 60, checkpoint={"every_s": 1})
    follower = processes.start("logs", "count", "-f", "--url", dev.console, name="logs")
    processes.until("its output streams", lambda: "step 25\n" in follower.said(), within_s=30)
    status = dev.task("count")
    assert (status["state"], status["nodes"]) == ("running", ["n1"])
    second = join(dev, "n2")
    processes.until("n2 joined", lambda: _reached("n2", "ok")(dev))
    processes.until("checkpoints are verified", lambda: len(dev.task("count")["checkpoints"]) >= 2, within_s=30)

    first.kill()
    os.killpg(_group(follower.said(), 1), signal.SIGKILL)
    status = dev.until_task("count", lambda row: row["attempt"] == 2 and row["state"] == "running", within_s=30)
    lost, resumed = status["attempts"]
    assert (lost["end"], lost["cause"], lost["members"][0]["node"]) == ("lost", "node-lost", "n1")
    kept_ms = resumed["members"][0]["resumed_progress_ms"]
    assert resumed["members"][0]["node"] == "n2"
    assert kept_ms > 0

    status = dev.until_task("count", lambda row: row["end"], within_s=40)
    assert (status["state"], status["failures"]) == ("succeeded", 0)
    output = processes.run("logs", "count", "--attempt", "2", "--url", dev.console)
    begun = re.search(r"attempt 2 begins at (\d+) ", output)
    assert begun is not None
    assert int(begun[1]) >= 10
    assert output.splitlines()[1:] == [f"step {n}" for n in range(int(begun[1]) + 1, 61)] + ["all done"]
    shown = processes.run("status", "count", "--url", dev.console)
    assert re.search(r"2 +0 +n2 +site-n2 +\w+ +\S+ s +\S+ s +\S+ s +succeeded", shown), shown  # the third: resumed at

    status = dev.until_task("count", _told_whole)
    books = _ledger(processes, dev)
    assert sorted(kind for _, kind in books if kind in ("work", "lost")) == ["lost", "work"]
    ran_1, ran_2 = books[1, "lost"], books[2, "work"]
    run_ms = status["attempts"][1]["members"][0]["run_ms"]
    assert ran_1["duration_ms"] == status["attempts"][0]["members"][0]["run_ms"] >= kept_ms
    assert ran_2["duration_ms"] == run_ms
    assert run_ms >= 100 * (60 - int(begun[1]))
    assert (ran_1["amount_micro"], abs(ran_2["amount_micro"] - run_ms) <= 1) == (0, True)  # one core: a micro each ms
    assert status["cost_micro"] == sum(line["amount_micro"] for line in books.values())

    assert dev.get("/api/v1/nodes/n1")["holdings"] != []
    again = join(dev, "n1")
    processes.until("n1 proved its place free", lambda: not dev.get("/api/v1/nodes/n1")["holdings"], within_s=30)
    dispatched = dev.get("/api/v1/events", topic="evenflow.dispatch.v1", limit=500)["items"]
    newest = {row["key"]: row["body"] for row in dispatched}
    assert newest == {"n1/default/count/1/0": None, "n2/default/count/2/0": None}
    assert _ledger(processes, dev).keys() >= books.keys()
    assert {k: v for k, v in _ledger(processes, dev).items() if k in books} == books
    assert [one.end() for one in (again, second, follower)] == [0, 0, 0]
    print(f"attempt 1 billed as lost {ran_1['duration_ms']} ms, attempt 2 worked {run_ms} ms from {begun[1]} of 60")


def test_a_program_outlives_its_agent_and_is_adopted(processes, folder, join):
    """Proves that an agent killed alone costs nothing: its successor finds the program, its output and its end."""
    dev = processes.dev("--no-agents", "--no-load")
    agent = join(dev, "n1")
    processes.until("n1 joined", lambda: _reached("n1", "ok")(dev))
    _submit(processes, folder, dev, 40)
    follower = processes.start("logs", "count", "-f", "--url", dev.console, name="logs")
    group = processes.until("it runs", lambda: "step 5\n" in follower.said() and _group(follower.said(), 1))
    agent.kill()
    os.killpg(group, 0)  # it lives
    join(dev, "n1")
    status = dev.until_task("count", lambda row: row["end"], within_s=40)
    assert (status["state"], status["attempt"], status["failures"]) == ("succeeded", 1, 0)
    started = dev.get("/api/v1/events", type="attempt.started")["items"]
    assert [(row["body"]["task"], row["body"]["attempt"]) for row in started] == [("count", 1)]
    text = processes.run("logs", "count", "--url", dev.console)
    assert text.splitlines()[1:] == [f"step {n}" for n in range(1, 41)] + ["all done"]
    processes.until("nothing is left of it", lambda: not dev.get("/api/v1/nodes/n1")["holdings"])
    left = entry_of(group)  # where nobody collects it, it stays as a number without a process
    assert left is None or not left.alive


def test_agents_and_programs_live_through_the_loss_of_all_services_and_their_views(processes, folder, join):
    """Proves that a restart without the documents needs no new token and no new session, and starts nothing again."""
    data = folder / "data"
    dev = processes.dev("--data", str(data), "--no-agents", "--no-load")
    agent = join(dev, "n1")
    processes.until("n1 joined", lambda: _reached("n1", "ok")(dev))
    _submit(processes, folder, dev, 50)
    processes.until("it runs", lambda: dev.task("count")["state"] == "running")
    session = dev.get("/api/v1/nodes/n1")["session"]
    dev.kill()
    for path in data.glob("documents.db*"):
        path.unlink()
    port = dev.gateway.rpartition(":")[2]
    dev = processes.dev("--data", str(data), "--no-agents", "--no-load", "--gateway-port", port)
    status = dev.until_task("count", lambda row: row["end"] and row["cost_micro"], within_s=40)
    assert (status["state"], status["attempt"], status["failures"]) == ("succeeded", 1, 0)
    assert (dev.get("/api/v1/nodes/n1")["session"], agent.lives()) == (session, True)
    assert len(dev.get("/api/v1/events", type="attempt.started")["items"]) == 1
    text = processes.run("logs", "count", "--url", dev.console)
    assert text.splitlines()[1:] == [f"step {n}" for n in range(1, 51)] + ["all done"]
    assert [kind for _, kind in _ledger(processes, dev)].count("work") == 1
