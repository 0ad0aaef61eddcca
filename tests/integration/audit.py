"""Audits a pool from outside, by its log alone: plain aiokafka, nothing of the product is imported.

    python tests/integration/audit.py HOST:PORT

Shown, and 1 when it does not hold: every submitted task has exactly one end; no attempt was assigned twice and no
member of an attempt was accepted twice; what agents said of their work is what the ledger charged, once; every queue's
chain is whole.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, defaultdict
from hashlib import sha256

from aiokafka import AIOKafkaConsumer, TopicPartition

TOPICS = {name: f"evenflow.{name}.v1" for name in ("tasks", "assignments", "runs", "billing")}
PARTITIONS = 16


async def committed(servers):
    """Every committed record of those topics as (type, id, body), in order within each partition."""
    reader = AIOKafkaConsumer(
        bootstrap_servers=servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",  # asking for the beginning alone loses against the default, the end
        enable_auto_commit=False,
        client_id="audit",
    )
    await reader.start()
    found = []
    try:
        places = [TopicPartition(topic, index) for topic in TOPICS.values() for index in range(PARTITIONS)]
        reader.assign(places)
        ends = await reader.end_offsets(places)
        while True:
            positions = [await reader.position(place) for place in places]
            if all(position >= ends[place] for position, place in zip(positions, places, strict=True)):
                return found
            for records in (await reader.getmany(timeout_ms=500, max_records=5_000)).values():
                for record in records:
                    headers = dict(record.headers)
                    body = json.loads(record.value) if record.value else {}
                    found.append((headers["ce_type"].decode(), headers["ce_id"].decode(), record.key.decode(), body))
    finally:
        await reader.stop()


def member_of(body):
    """Names one member of one attempt."""
    return f"{body['tenant']}/{body['task']}/{body['attempt']}/{body['member']}"


class Audit:
    """What one pass over the log leaves behind."""

    def __init__(self, records):
        self.submitted, self.rejected = set(), set()
        self.ends, self.assigned, self.starts = Counter(), Counter(), defaultdict(set)
        self.said_run, self.used, self.lines = {}, {}, defaultdict(list)
        self.seen_ids = set()
        for kind, id_, key, body in records:
            if (
                kind in ("task.submitted", "task.assigned", "task.requeued", "task.ended")
                and (kind, id_) in self.seen_ids
            ):
                continue
            self.seen_ids.add((kind, id_))
            self.take(kind, id_, key, body)

    def take(self, kind, id_, key, body):
        """Take one record."""
        if kind == "task.submitted":
            self.submitted.add(key)
        elif kind in ("task.rejected", "task.ended"):
            self.ends[key] += 1
        elif kind == "task.assigned":
            self.assigned[key, body["attempt"]] += 1
        elif kind == "attempt.accepted":
            self.starts[member_of(body)].add((body["node"], body["generation"]))
        elif kind == "attempt.reclaimed":
            self.said_run.setdefault(member_of(body), body["outcome"]["run_ms"])
        elif kind == "charge.recorded":
            self.lines[body["queue"]].append(body)
        if kind in ("task.ended", "task.requeued") and body.get("use"):
            for member in body["use"]["members"]:
                name = f"{body['tenant']}/{body['task']}/{body['use']['attempt']}/{member['place']['member']}"
                self.used[name] = (body["use"]["end"], member)

    def complaints(self):
        """Everything that does not hold."""
        yield from (f"{key} has {self.ends[key]} ends" for key in sorted(self.submitted) if self.ends[key] != 1)
        yield from (
            f"{key} attempt {n} was assigned {times} times" for (key, n), times in self.assigned.items() if times > 1
        )
        yield from (f"{name} was accepted at {sorted(at)}" for name, at in self.starts.items() if len(at) > 1)
        yield from self.money()
        yield from (f"the chain of queue {queue} is broken" for queue, lines in self.lines.items() if not whole(lines))

    def money(self):
        """Receipts against ledger lines."""
        lines = Counter(line["entry"] for queue in self.lines.values() for line in queue)
        charged = {line["entry"]: line["duration_ms"] for queue in self.lines.values() for line in queue}
        yield from (f"{entry} was charged {times} times" for entry, times in lines.items() if times > 1)
        for name, (end, member) in self.used.items():
            if not member["started"]:
                continue
            entry = f"{name}/{'lost' if end == 'lost' else 'work'}"
            if charged.get(entry) != member["run_ms"]:
                yield f"{entry}: {member['run_ms']} ms were accepted, {charged.get(entry)} charged"
            if end == "succeeded" and self.said_run.get(name) != member["run_ms"]:
                yield f"{entry}: its agent said {self.said_run.get(name)} ms, {member['run_ms']} were accepted"

    def figures(self):
        """What was looked at."""
        return {
            "submitted": len(self.submitted),
            "ended": sum(self.ends.values()),
            "attempts": len(self.assigned),
            "members_started": len(self.starts),
            "ledger_lines": sum(map(len, self.lines.values())),
        }


def whole(lines):
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


def main():
    """Audit; 1 when something does not hold."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = Audit(asyncio.run(committed(sys.argv[1])))
    complaints = list(found.complaints())
    print(json.dumps({**found.figures(), "complaints": len(complaints)}))
    for complaint in complaints[:50]:
        print("FAILS:", complaint)
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
