"""Recomputes every figure that the demo printed from the log it kept, with the standard library only.

    python tests/demo/recompute.py OUT

OUT is the demo's `--out` folder: `joined/events.jsonl`, `isolated/events.jsonl` and `figures.json` (what was printed).
Nothing of the product is imported. Exit code 0: every figure is the same and the demo shows what it claims;
1 otherwise.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

HOURS_6_S = 6 * 3600


def events(path):
    """Every record of one world, in order."""
    with path.open() as file:
        for line in file:
            event = json.loads(line)
            if isinstance(event["value"], dict):
                yield event["type"], float(event["t"]), event["value"]


def mean_p95(values):
    """Mean and nearest-rank 95th percentile, to the millisecond."""
    if not values:
        return [0.0, 0.0]
    values = sorted(values)
    return [round(sum(values) / len(values), 3), round(values[-(-95 * len(values) // 100) - 1], 3)]


def mib(text):
    """Memory in MiB."""
    return int(text[: -len("MiB")])


def device_count(document):
    """Whole devices that a task or node document asks for or has; a share counts as one."""
    devices = document.get("devices")
    return 0 if devices is None else devices.get("count", 1)


def could_hold(task, node):
    """Whether an empty node of the task's home could hold it."""
    wanted = task["resources"]
    return (
        node["site"] == task["labels"]["home"]
        and float(node["cpu"]) >= float(wanted["cpu"])
        and mib(node["memory"]) >= mib(wanted["memory"])
        and device_count(node) >= device_count(wanted)
    )


def chain_is_whole(lines):
    """Whether each line of a queue's ledger follows from the one before."""
    previous, balance = "0" * 64, 0
    for number, line in enumerate(sorted(lines, key=lambda one: one["number"]), 1):
        body = {name: value for name, value in line.items() if name not in ("previous", "hash")}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        balance += line["amount_micro"]
        digest = sha256(f"{previous}\n{text}".encode()).hexdigest()
        told = (line["number"], line["previous"], line["balance_micro"], line["hash"])
        if told != (number, previous, balance, digest):
            return False
        previous = digest
    return True


class World:
    """What one pass over a world's events leaves behind."""

    def __init__(self):
        self.nodes, self.tasks, self.submitted, self.started = {}, {}, {}, {}
        self.held, self.begun, self.refused = {}, {}, {}
        self.runs, self.assigned = [], set()
        self.ledger, self.seen = defaultdict(list), defaultdict(int)
        self.money = {"bytes": 0, "cost_micro": 0, "predicted_gain_ms": 0, "actual_gain_ms": 0}
        self.finished = 0.0

    def take(self, kind, t, value):
        """Take one event."""
        if kind == "node.registered":
            self.nodes[value["node"]] = value["document"]
        elif kind == "task.submitted":
            self.tasks[value["id"]] = value
            self.submitted.setdefault(value["id"], t)
        elif kind == "task.queued" and value.get("crossing"):
            self.refused[value["task"]] = value["crossing"]["gain_ms"]
        elif kind == "task.assigned":
            self.assigned.add(value["task"])
            key = (value["task"], value["attempt"])
            self.held[key] = sum(d["milli"] for m in value["members"] for d in m["devices"])
            self.seen["taken"] += bool(value.get("crossing") and value["crossing"]["taken"])
        elif kind == "attempt.started":
            self.started.setdefault(value["task"], t)
            self.begun.setdefault((value["task"], value["attempt"]), t)
            self.seen["resumed_attempts"] += value["resumed_progress_ms"] > 0
            self.seen["resumed_work_s"] += value["resumed_progress_ms"] // 1000
        elif kind in ("task.requeued", "task.ended"):
            self.end(kind, t, value)
        elif kind == "transfer.finished":
            self.money["bytes"] += value["counted_bytes"]
        elif kind == "crossing.settled":
            self.seen["settled"] += 1
            self.money["predicted_gain_ms"] += value["predicted"]["gain_ms"]
            self.money["actual_gain_ms"] += value["gain_ms"]
        elif kind in ("charge.recorded", "charge.corrected"):
            self.ledger[value["queue"]].append(value)
            self.money["cost_micro"] += value["amount_micro"] if value["kind"] == "transfer" else 0

    def end(self, kind, t, value):
        """Take the end of an attempt, and of its task."""
        use = value.get("use")
        if use:
            self.seen["lost_attempts"] += use["end"] == "lost"
            key = (value["task"], use["attempt"])
            if key in self.begun:
                self.runs.append((self.begun[key], t, self.held.get(key, 0)))
        if kind == "task.ended":
            self.seen["succeeded"] += value["end"] == "succeeded"
            self.finished = max(self.finished, t)


def world(path):
    """The figures of one world, and each site's isolated offered load."""
    w = World()
    for kind, t, value in events(path):
        w.take(kind, t, value)
    counted = {name for name, task in w.tasks.items() if any(could_hold(task, node) for node in w.nodes.values())}
    waits = defaultdict(list)
    for name in w.tasks:
        if name in counted and name in w.started:
            waits[w.tasks[name]["labels"]["home"]].append(w.started[name] - w.submitted[name])
    everybody = mean_p95([wait for home in sorted(waits) for wait in waits[home]])
    end = max(w.submitted.values())
    capacity = sum(1000 * device_count(node) for node in w.nodes.values()) * end
    used = sum(milli * max(0.0, min(until, end) - since) for since, until, milli in w.runs)
    figures = {
        "submitted": len(w.tasks),
        "impossible_at_home": len(w.tasks) - len(counted),
        "placed": len(w.assigned),
        "succeeded": w.seen["succeeded"],
        "wait_mean_s": everybody[0],
        "wait_p95_s": everybody[1],
        "wait_by_site": {home: mean_p95(waits[home]) for home in sorted(waits)},
        "device_use_pct": round(100 * used / capacity, 2),
        "lost_attempts": w.seen["lost_attempts"],
        "resumed_attempts": w.seen["resumed_attempts"],
        "resumed_work_s": w.seen["resumed_work_s"],
        "crossings": {
            "taken": w.seen["taken"],
            "settled": w.seen["settled"],
            **w.money,
            "refused_no_gain": sum(gain <= 0 for gain in w.refused.values()),
            "refused_within_margin": sum(gain > 0 for gain in w.refused.values()),
        },
        "bill_micro": {queue: sum(line["amount_micro"] for line in w.ledger[queue]) for queue in sorted(w.ledger)},
        "bill_chain_whole": all(chain_is_whole(lines) for lines in w.ledger.values()),
        "finished_s": w.finished,
    }
    return figures, {site: load(site, w.tasks, w.nodes) for site in sorted({n["site"] for n in w.nodes.values()})}


def load(site, tasks, nodes):
    """Isolated offered load: demand × duration over capacity × 6 h, of devices or cores, whichever is larger."""
    own = [task for task in tasks.values() if task["labels"]["home"] == site]
    there = [node for node in nodes.values() if node["site"] == site]
    devices = sum(_devices(task) * task["run"]["work_s"] for task in own)
    cores = sum(float(task["resources"]["cpu"]) * task["run"]["work_s"] for task in own)
    return max(
        devices / (sum(device_count(node) for node in there) * HOURS_6_S),
        cores / (sum(float(node["cpu"]) for node in there) * HOURS_6_S),
    )


def _devices(task):
    devices = task["resources"].get("devices", {})
    return float(devices.get("share", devices.get("count", 0)))


def compare(name, printed, found, problems):
    """Note every figure that differs."""
    for key, value in found.items():
        same = printed.get(key) == value
        print(f"{'same' if same else 'DIFFERS':8} {name}.{key} = {value}")
        if not same:
            problems.append(f"{name}.{key}: printed {printed.get(key)}, recomputed {value}")


def main(out):
    """Recompute and judge."""
    printed = json.loads((out / "figures.json").read_text())
    problems = []
    found, loads = {}, {}
    for name in ("isolated", "joined"):
        found[name], loads = world(out / name / "events.jsonl")
        compare(name, printed[name], found[name], problems)
    for site, offered in loads.items():
        mean, p95 = found["isolated"]["wait_by_site"][site]
        joined = found["joined"]["wait_by_site"][site]
        print(f"{site}: load {offered:.2f}, wait mean/p95 isolated {mean}/{p95} s, joined {joined[0]}/{joined[1]} s")
    busiest = max(loads, key=loads.get)
    claims = {
        "isolated mean wait at the busiest site is at least 60 s": found["isolated"]["wait_by_site"][busiest][0] >= 60,
        "joined mean wait is lower": found["joined"]["wait_mean_s"] < found["isolated"]["wait_mean_s"],
        "a crossing with bytes was taken and settled": found["joined"]["crossings"]["settled"] > 0
        and found["joined"]["crossings"]["bytes"] > 0,
        "a crossing was refused": found["joined"]["crossings"]["refused_no_gain"]
        + found["joined"]["crossings"]["refused_within_margin"]
        > 0,
        "work was resumed after a node was lost": all(
            found[name]["lost_attempts"] > 0 and found[name]["resumed_work_s"] > 0 for name in found
        ),
        "the bills' chains are whole": all(found[name]["bill_chain_whole"] for name in found),
        "the sites' offered loads are 1.1, 0.8, 0.5 and 0.3": all(
            abs(offered - wanted) <= 0.02
            for offered, wanted in zip(sorted(loads.values()), (0.3, 0.5, 0.8, 1.1), strict=True)
        ),
        "every task that some home could hold ended well": found["joined"]["succeeded"]
        >= found["joined"]["submitted"] - found["joined"]["impossible_at_home"],
    }
    for claim, shown in claims.items():
        print(f"{'shown' if shown else 'NOT SHOWN':9} {claim}")
    problems += [f"not shown: {claim}" for claim, shown in claims.items() if not shown]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
