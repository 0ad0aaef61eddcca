"""The API over a whole console on an embedded log: requests become records, wrong ones a clear no."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from evenflow.client import results
from evenflow.client.subscribing import Subscription
from evenflow.events import streams
from evenflow.events.contracts.console import ChangeRecorded, NodeDrainRequested
from evenflow.events.contracts.inventory import NodeRegistered
from evenflow.events.contracts.placement import ReasonDetail, SubmissionRefused
from evenflow.platform.broker.codec import decode

BAD_BODIES = [
    (b"", "is empty"),
    (b"\xff\xfe", "is not UTF-8"),
    (b"[" * 100_000, "nested"),
    (b"[1]", "must be a map"),
    (b'{"id": "a/b"}', "must be an id"),
    (b'{"id": "\\u0430"}', "must be an id"),
    (b'{"id": "x\\n"}', "must be an id"),
    (b'{"resources": {"cpu": NaN}}', "must be finite"),
    (b'{"resources": {"cpu": -1}}', "must not be negative"),
    (b'{"unheard_of": 1}', "is not a known field"),
    (b'{"priority": ' + b"9" * 10_000 + b"}", "characters"),
    (b'{"id": "a", "id": "b"}', "twice"),
    (b"a: &x 1\nb: *x\n", "anchor"),
]


async def test_a_submission_is_published_as_it_was_written(bench):
    """Proves that the record's value is the author's own bytes, under tenant/task, with an audit line beside it."""
    raw = b'{ "id":"t1" ,"run":{"work_s":5},"name":"caf\\u00e9"}'
    answer = await bench.client.post("/api/v1/tasks", content=raw, headers={"x-evenflow-who": "ann"})
    assert answer.status_code == 202
    assert answer.json()["permalink"] == "/api/v1/tasks/t1"
    entry = bench.board.tasks.find("default/t1").course.ordered()[0]
    record = await bench.host.parts[0].one(entry.topic, entry.partition, entry.offset)
    assert (record.value, record.key) == (raw, b"default/t1")
    await bench.until(lambda: len(bench.board.papers.changes) == 1)
    assert (await bench.get("/api/v1/changes"))["items"][0]["actor"] == "ann"


async def test_a_task_without_an_id_gets_one_in_front(bench):
    """Proves that two submissions without an id are two tasks, and that the rest of the document is untouched."""
    made = [(await bench.client.post("/api/v1/tasks", content=b'{"queue":"q"}')).json()["task"] for _ in range(2)]
    assert len(set(made)) == 2
    for task in made:
        assert await bench.get(f"/api/v1/tasks/{task}/specification") == {"id": task, "queue": "q"}


async def test_yaml_means_the_same_as_json(bench):
    """Proves that a YAML document is carried as JSON with the same content."""
    assert (await bench.client.post("/api/v1/tasks", content=b"id: y\nresources: {cpu: 0.5}\n")).status_code == 202
    assert await bench.get("/api/v1/tasks/y/specification") == {"id": "y", "resources": {"cpu": 0.5}}


@pytest.mark.parametrize(("body", "words"), BAD_BODIES, ids=range(len(BAD_BODIES)))
async def test_a_bad_body_is_refused_with_path_and_way_out(bench, body, words):
    """Proves that whatever is sent is answered with 4xx, a code, the problem and what to do; and nothing is written."""
    answer = await bench.client.post("/api/v1/tasks", content=body)
    assert 400 <= answer.status_code < 500
    told = answer.json()
    assert {"code", "path", "problem", "way_out"} <= set(told)
    assert words in told["problem"]
    assert told["way_out"]
    assert not bench.board.tasks.pending


async def test_a_body_beyond_the_bound_is_refused(bench):
    """Proves that bodies are read no further than their bound, and that none grows past the log's own."""
    answer = await bench.client.post("/api/v1/tasks", content=b"x" * 1_048_577)
    assert (answer.status_code, answer.json()["code"]) == (413, "too-large")
    grown = b'{"id":"big","name":"' + b"n" * 200 + b'","env":{' + b'"A":"' + b"x" * 1_036_000 + b'"}}'
    answer = await bench.client.post("/api/v1/tasks", content=grown)
    assert answer.status_code in (413, 422)
    assert (await bench.client.post("/api/v1/tasks", content=b'{"id":"good"}')).status_code == 202


async def test_a_planned_field_is_named(bench):
    """Proves that what does nothing yet is refused by name instead of being ignored."""
    answer = await bench.client.post("/api/v1/tasks", content=b'{"budget":"7.00"}')
    assert (answer.status_code, answer.json()["code"], answer.json()["path"]) == (422, "planned", "budget")


async def test_a_submission_can_wait_for_its_decision(bench, facts):
    """Proves that the answer carries placement's word when it comes in time, and comes without it otherwise."""

    async def decide():
        await bench.until(lambda: bench.board.tasks.find("default/t1") is not None)
        await bench.say(streams.ASSIGNMENTS, facts.assigned())

    deciding = asyncio.create_task(decide())
    answer = await bench.client.post("/api/v1/tasks", params={"wait_ms": 2000}, content=b'{"id":"t1"}')
    await deciding
    assert answer.json()["status"]["state"] == "starting"
    late = await bench.client.post("/api/v1/tasks", params={"wait_ms": 10}, content=b'{"id":"t2"}')
    assert (late.status_code, late.json()["status"]["decided"]) == (202, False)


async def test_the_same_body_again_is_the_same_task(bench, facts):
    """Proves that a repeated submission is known at once and publishes nothing."""
    await bench.client.post("/api/v1/tasks", content=b'{"id":"t1","queue":"q"}')
    await bench.say(streams.ASSIGNMENTS, facts.assigned())
    again = await bench.client.post("/api/v1/tasks", content=b'{ "queue":"q", "id":"t1" }')
    assert (again.status_code, again.json()["known"]) == (202, True)
    assert [e.type for e in bench.board.tasks.find("default/t1").course.ordered()].count("task.submitted") == 1


async def test_a_used_id_with_another_body_is_a_conflict(bench, facts):
    """Proves that placement's refusal of a used id reaches the one who waits for it as 409."""
    await bench.client.post("/api/v1/tasks", content=b'{"id":"t1"}')
    await bench.say(streams.ASSIGNMENTS, facts.assigned())

    async def refuse():
        task = bench.board.tasks.find("default/t1")
        await bench.until(lambda: len(task.course.ordered()) == 3)
        second = [entry for entry in task.course.ordered() if entry.type == "task.submitted"][-1]
        record = await bench.host.parts[0].one(second.topic, second.partition, second.offset)
        body = SubmissionRefused(tenant="default", task="t1", reason=ReasonDetail(reason="id-conflict"))
        await bench.say(streams.ASSIGNMENTS, body, cause=decode(record, streams.TASKS))

    await bench.until(lambda: bench.board.tasks.find("default/t1").decided)
    refusing = asyncio.create_task(refuse())
    answer = await bench.client.post("/api/v1/tasks", params={"wait_ms": 2000}, content=b'{"id":"t1","queue":"q"}')
    await refusing
    assert (answer.status_code, answer.json()["code"]) == (409, "id-conflict")


async def test_unknown_parameters_and_addresses_are_refused(bench):
    """Proves that a misspelt filter is not silently ignored, and that every error has the one form."""
    for method, path, status in (
        ("GET", "/api/v1/tasks?stat=queued", 422),
        ("GET", "/api/v1/tasks?limit=501", 422),
        ("GET", "/api/v1/tasks?state=flying", 422),
        ("GET", "/api/v1/tasks?after=zzz", 422),
        ("GET", "/api/v1/nope", 404),
        ("DELETE", "/api/v1/tasks", 405),
        ("GET", "/api/v1/tasks/none", 404),
        ("GET", "/api/v1/tasks/none/why", 404),
        ("GET", "/api/v1/tasks/%00", 404),
        ("GET", "/api/v1/nodes/none", 404),
        ("POST", "/api/v1/nodes/none/drain", 404),
        ("GET", "/api/v1/dlq/nope/0/1", 404),
        ("GET", "/api/v1/dlq/tasks/0/7", 404),
        ("GET", "/api/v1/ledger?queue=no", 404),
        ("GET", "/api/v1/dlq/tasks/0/99999999999999999999999999", 404),
        ("GET", "/api/v1/events?limit=0", 422),
    ):
        answer = await bench.client.request(method, path)
        assert answer.status_code == status, (path, answer.text)
        assert {"code", "path", "problem", "way_out"} <= set(answer.json()), path


async def test_a_foreign_page_can_change_nothing(bench):
    """Proves that a name made to point at loopback is refused, and a request that another site's page sent."""
    foreign_host = await bench.client.get("/api/v1/tasks", headers={"host": "evil.example"})
    foreign_page = await bench.client.post("/api/v1/tasks", content=b"{}", headers={"origin": "http://evil.example"})
    cross_site = await bench.client.post("/api/v1/tasks", content=b"{}", headers={"sec-fetch-site": "cross-site"})
    assert [answer.status_code for answer in (foreign_host, foreign_page, cross_site)] == [403, 403, 403]
    own_page = await bench.client.post("/api/v1/tasks", content=b"{}", headers={"origin": "http://127.0.0.1:7070"})
    assert own_page.status_code == 202


async def test_requests_to_nodes_go_on_the_log_with_an_audit_line(bench):
    """Proves that a drain is published as a request with its deadline, and that who and why are recorded."""
    status = NodeRegistered(
        node="n1",
        revision=1,
        document={"id": "n1", "site": "east"},
        session="s",
        reach="ok",
        administration="open",
        health="ok",
    )
    await bench.say(streams.NODES, status)
    await bench.until(lambda: bench.board.fleet.known("n1"))
    body = {"reason": "fans", "deadline_s": 1.5}
    answer = await bench.client.post("/api/v1/nodes/n1/drain", json=body, headers={"x-evenflow-who": "ann"})
    assert answer.status_code == 202
    async with Subscription(bench.runtime.transport, "requests", "audit", group="test") as events:
        found = []
        async for event in events:
            found.append(event.body)
            if len(found) == 2:
                break
    request = next(one for one in found if isinstance(one, NodeDrainRequested))
    change = next(one for one in found if isinstance(one, ChangeRecorded))
    assert (request.deadline_ms, request.reason) == (1500, "fans")
    assert (change.actor, change.action, change.subject, change.reason) == ("ann", "node.drain", "n1", "fans")
    for wrong in ({"deadline_s": "soon"}, {"deadline_s": -1}, {"deadline_s": True}, {"unknown": 1}, {"reason": 5}, []):
        assert (await bench.client.post("/api/v1/nodes/n1/drain", json=wrong)).status_code == 422


async def test_documents_go_through_their_doors_and_get_versions(bench):
    """Proves that versions count up, links become two directed documents, and a stale `expect` is a conflict."""
    put = bench.client.put
    assert (await put("/api/v1/documents/queue/q", content=b"limit: {devices: '0.3'}")).status_code == 202
    again = await put("/api/v1/documents/queue/q?expect=1&reason=more", content=b"limit: {devices: 2}")
    assert again.json()["published"][0]["version"] == 2
    assert (await put("/api/v1/documents/queue/q?expect=1", content=b"{}")).status_code == 409
    link = await put("/api/v1/documents/link/east..west", content=b"bandwidth: 1Gbit/s")
    assert [row["name"] for row in link.json()["published"]] == ["east..west", "west..east"]
    history = await bench.get("/api/v1/documents/queue/q/history")
    assert [row["version"] for row in history["items"]] == [2, 1]
    for path, body in (
        ("queue/q", b"foo: 1"), ("queue/Q", b"{}"), ("queue/q", b"id: other"), ("queue/q", b"budget: '5'"),
        ("link/east", b"bandwidth: 1Gbit/s"), ("link/a..a", b"bandwidth: 1Gbit/s"), ("policy/mine", b"{}"),
        ("policy/default", b"crossing: {margin: -1}"), ("site/east", b"latitude: 91"),
    ):  # fmt: skip
        assert (await put(f"/api/v1/documents/{path}", content=body)).status_code == 422, path
    assert (await put("/api/v1/documents/secret/x", content=b"{}")).status_code == 404


async def test_a_parked_record_can_be_put_back_with_its_own_bytes(bench):
    """Proves that the warden parks what can't be read, and that a retry restores key, value and headers exactly."""
    headers = [("ce_type", b"node.registered"), ("strange", b"\x00\xff"), ("ce_id", b"x")]
    await bench.raw("evenflow.nodes.v1", b'{"broken', b"n9", headers)
    await bench.until(lambda: bench.host.inlet.dead_letters.parked_count == 1)
    (letter,) = (await bench.get("/api/v1/dlq"))["items"]
    assert letter["topic"] == "evenflow.nodes.v1"
    place = f"/api/v1/dlq/{letter['topic']}/0/{letter['offset']}"
    assert (await bench.get(place))["text"] == '{"broken'
    assert (await bench.client.post(f"{place}/retry")).status_code == 202
    await bench.until(lambda: bench.host.inlet.dead_letters.parked_count == 2)
    assert (await bench.get("/api/v1/dlq", state="retried"))["items"][0]["origin"] == letter["origin"]
    partition, offset = map(int, letter["origin"].split("/")[1:])
    first = await bench.host.parts[0].one("evenflow.nodes.v1", partition, offset)
    second = await bench.host.parts[0].one("evenflow.nodes.v1", partition, offset + 1)
    assert (second.key, second.value) == (first.key, first.value)
    assert list(second.headers) == [*headers, ("x-dlq-retry-of", letter["origin"].encode())]


async def test_a_retry_that_the_log_does_not_permit_says_who_can_mend_it(bench):
    """Proves that behind locked doors a retry ends in one line, and that the letter stays open."""
    await bench.raw("evenflow.nodes.v1", b'{"broken', b"n9", [])
    await bench.until(lambda: bench.host.inlet.dead_letters.parked_count == 1)
    (letter,) = (await bench.get("/api/v1/dlq"))["items"]
    send = bench.host.outlet._producer.send_together

    async def locked(records, partitions=None):
        if any(record.topic == "evenflow.nodes.v1" for record in records):
            raise TopicAuthorizationFailedError
        return await send(records, partitions)

    async def unchanged():
        """A refused record would be missing in the count of those behind it; here nothing is missing."""

    bench.host.outlet._producer.send_together = locked
    bench.host.outlet._begin_anew = unchanged
    answer = await bench.client.post(f"/api/v1/dlq/{letter['topic']}/0/{letter['offset']}/retry")
    assert answer.status_code == 403
    assert "docs/security.md" in answer.text
    assert (await bench.get("/api/v1/dlq", state="open"))["items"][0]["origin"] == letter["origin"]


async def test_the_largest_record_that_the_log_takes_can_be_parked(bench):
    """Proves that a bad record of the log's own maximum does not block its partition for want of room among letters."""
    await bench.raw("evenflow.nodes.v1", b"{" + b"n" * 1_048_400, b"n1")
    await bench.raw("evenflow.links.v1", b"{" + b"n" * 1_000_000, b"a/b", [("x", b"y" * 8_000)] * 5)
    await bench.raw("evenflow.nodes.v1", b"{", b"n1")
    await bench.until(lambda: bench.host.inlet.dead_letters.parked_count == 3)


async def test_a_dropped_letter_is_no_longer_open(bench):
    """Proves that setting a letter aside is a line of the audit, after which the list is empty."""
    await bench.raw("evenflow.links.v1", b"\xff", b"a/b")
    await bench.until(lambda: bench.host.inlet.dead_letters.parked_count == 1)
    (letter,) = (await bench.get("/api/v1/dlq"))["items"]
    await bench.client.post(f"/api/v1/dlq/links/0/{letter['offset']}/drop", json={"reason": "noise"})
    assert (await bench.get("/api/v1/dlq"))["items"] == []
    assert (await bench.get("/api/v1/dlq", state="dropped"))["items"][0]["offset"] == letter["offset"]


async def test_the_tail_waits_for_what_is_wanted(bench, facts):
    """Proves that a waiting page returns as soon as a wanted event comes, with a cursor that goes on from there."""
    start = (await bench.get("/api/v1/events"))["next"]
    waiting = asyncio.create_task(bench.get("/api/v1/events", after=start, wait_ms=3000, task="t2"))
    await bench.say(streams.ASSIGNMENTS, facts.assigned("t1"))
    await bench.say(streams.ASSIGNMENTS, facts.assigned("t2"))
    found = await waiting
    assert [row["body"]["task"] for row in found["items"]] == ["t2"]
    assert (await bench.get("/api/v1/events", after=found["next"]))["items"] == []
    assert (await bench.get("/api/v1/events", after="other-1"))["reset"] is True


async def test_output_is_the_chunks_in_order_from_where_a_reader_was(bench, facts):
    """Proves that a task's output is put together from its chunks, and that an offset skips what was read."""
    await bench.say(streams.ASSIGNMENTS, facts.assigned())
    await bench.until(lambda: bench.board.tasks.find("default/t1") is not None)
    for name, data in (("c00000002", b"world\n"), ("c00000001", b"hello\n")):
        await bench.runtime.objects.put(f"logs/default/t1/a1/m0/{name}", data)
    assert (await bench.client.get("/api/v1/tasks/t1/logs")).text == "hello\nworld\n"
    assert (await bench.client.get("/api/v1/tasks/t1/logs?offset=8")).text == "rld\n"
    assert (await bench.client.get("/api/v1/tasks/t1/logs?attempt=9")).status_code == 404
    assert (await bench.client.get("/api/v1/tasks/t1/logs?member=1")).status_code == 422


async def test_every_answer_is_what_the_client_library_reads(bench, facts):
    """Proves that the typed results and the API's rows name the same fields, none more on either side."""
    await bench.say(streams.ASSIGNMENTS, facts.assigned())
    await bench.until(lambda: bench.board.tasks.find("default/t1") is not None)

    def strict(model, row):
        known = {field.alias or name for name, field in model.model_fields.items()}
        assert set(row) == known, set(row) ^ known
        model.model_validate(row)

    strict(results.TaskRow, (await bench.get("/api/v1/tasks"))["items"][0])
    status = await bench.get("/api/v1/tasks/t1")
    strict(results.TaskStatus, status)
    strict(results.Attempt, status["attempts"][0])
    strict(results.QueueRow, (await bench.get("/api/v1/queues"))["items"][0])
    strict(results.Ledger, await bench.get("/api/v1/ledger"))
    strict(results.Events, await bench.get("/api/v1/events"))


async def test_hostile_names_come_back_byte_for_byte(bench):
    """Proves that whatever a name holds, it is refused or shown exactly, and the metrics still parse."""
    names = [
        "a" * 250,
        "😀",
        "\u202eabc",
        "e\u0301",
        "\u00e9",
        " x",
        "a/b",
        "../../etc",
        "$where",
        "{{x}}",
        '"quoted"\\',
    ]
    for number, name in enumerate(names):
        body = json.dumps({"id": f"n{number}", "name": name}).encode()
        answer = await bench.client.post("/api/v1/tasks", content=body)
        assert answer.status_code in (202, 422)
        if answer.status_code == 202:
            assert (await bench.get(f"/api/v1/tasks/n{number}"))["name"] == name
    for line in (await bench.client.get("/metrics")).text.splitlines():
        assert line.startswith("# ") or line.rpartition(" ")[2].isdigit(), line


async def test_health_and_readiness_answer(bench):
    """Proves that a host can tell a process that lives from one that serves."""
    assert (await bench.get("/health"))["status"] == "ok"
    assert (await bench.get("/ready"))["status"] == "ready"
    bench.host.ready = False
    assert (await bench.client.get("/ready")).status_code == 503
