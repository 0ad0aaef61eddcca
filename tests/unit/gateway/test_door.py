"""Who may speak at the gateway, what it publishes, and how it says no."""

from __future__ import annotations

import gc
import json

import pytest

from evenflow.core.errors import Unavailable
from evenflow.core.lifecycle.node import Administration, Health, Reach
from evenflow.events import streams
from evenflow.events.contracts.agent import AttemptAccepted, LinkSampled, NodeHeartbeat
from evenflow.events.contracts.inventory import NodeChanged, NodeRegistered
from evenflow.gateway.bodies import RecordBody
from evenflow.platform.broker.codec import Fact
from evenflow.platform.security.identity import key_from_seed, public_text
from evenflow.platform.security.join_tokens import issue_token
from evenflow.platform.security.signatures import verify_receipt
from evenflow.platform.security.stamps import stated_fields

STRANGER = key_from_seed("stranger")


def accepted(task: str = "t1", node: str = "n1", **more) -> AttemptAccepted:
    values = {"tenant": "default", "attempt": 1, "generation": 1, "member": 0, "epoch": 1, "at_ms": 1, **more}
    return AttemptAccepted(task=task, node=node, **values)


def error_of(told) -> tuple[str, str]:
    return told["error"]["code"], told["error"]["path"]


def test_a_node_joins_with_its_token_and_is_announced(play):
    """Proves that a session comes with its key and that inventory hears the document under the session."""

    async def main(door):
        status, told = await door.join()
        assert (status, told["heartbeat_ms"]) == (201, 10_000)

    door = play(main)
    announced = door.on(streams.TELEMETRY)[0]
    assert (announced.body.node, announced.body.document) == ("n1", {"id": "n1", "site": "east"})
    assert announced.envelope.stamp.session == announced.body.session == door.session


@pytest.mark.parametrize(
    ("how", "status", "code", "message"),
    [
        ({"token": "guess"}, 401, "identity", "join token is unknown, expired or used"),
        ({"sign": False}, 401, "identity", "not signed"),
        ({"sign": STRANGER}, 401, "identity", "not signed with the key that it shows"),
        ({"public_key": "12"}, 400, "field-refused", "64 lower-case hexadecimal digits"),
        ({"node": "N 1"}, 400, "field-refused", "must match"),
        ({"surprise": 1}, 400, "field-refused", "surprise"),
        ({"document": None}, 400, "field-refused", "document"),
        ({"booted_ms": -1}, 400, "field-refused", "booted_ms"),
    ],
)
def test_nobody_joins_without_proof_and_a_readable_body(play, how, status, code, message):
    """Proves each refusal of a session with its code and reason."""

    async def main(door):
        got, told = await door.join(**how)
        assert (got, told["error"]["code"]) == (status, code)
        assert message in told["error"]["message"]

    play(main)


def test_a_node_keeps_its_key_and_comes_back_without_a_token(play):
    """Proves that the first key counts: the same key returns tokenless, another one is refused and alerted once."""

    async def main(door):
        await door.join()
        assert (await door.join(token=""))[0] == 201
        for _ in range(2):
            status, told = await door.join(key=STRANGER)
            assert (status, "known by another key" in told["error"]["message"]) == (401, True)

    alerts = play(main).on(streams.ALERTS)
    assert [(one.envelope.type, one.body.name, one.body.subject) for one in alerts] == [
        ("alert.raised", "node.identity", "n1")
    ]


def test_strangers_write_so_much_and_no_more(play):
    """Proves that made-up names fill neither log nor alerts, and that a known node's impostor is told all the same."""

    async def main(door):
        await door.join()
        for number in range(9):
            assert (await door.join(node=f"N {number}"))[0] == 400
            assert (await door.join(node=f"made-up-{number}", token="guess"))[0] == 401
        assert (await door.join(key=STRANGER))[0] == 401
        await door.clock.sleep(60)
        assert (await door.join(node="N x"))[0] == 400

    door = play(main, strangers_recorded_per_minute_max=4)
    subjects = [one.body.subject for one in door.on(streams.ALERTS)]
    strange = [one.body.node for one in door.on(streams.TELEMETRY) if one.body.node != "n1"]
    assert subjects[-1] == "n1"
    assert len(subjects[:-1]) + len(strange) == 4 + 1
    assert strange[-1] == "N x"


def test_a_node_that_registered_is_known_from_the_log_when_the_documents_are_gone(play):
    """Proves that identities are a view: the key in the node's state lets it in without a token, another key not."""

    async def main(door):
        state = NodeRegistered(
            node="n1", revision=1, document={"id": "n1", "site": "east"}, session="s", reach="ok",
            administration="open", health="ok", public_key=public_text(door.key),
        )  # fmt: skip
        await door.outlet.publish(Fact(streams.NODES, state))
        await door.clock.sleep(2)
        assert (await door.join(token="", key=key_from_seed("other")))[0] == 401
        assert (await door.join(token=""))[0] == 201

    play(main)


def test_an_address_or_method_that_is_not_there_is_refused_like_everything_else(play):
    """Proves that agents read one form of refusal whatever went wrong."""

    async def main(door):
        for target, told in (("/v2", (404, "not-found")), ("/v1/sessions", (405, "method-refused"))):
            status, answer = await door.raw("GET", target, {})
            assert (status, error_of(answer)[0]) == told

    play(main)


def test_a_join_token_lets_one_node_in(play):
    """Proves that one-time tokens work beside the static one, and that no second key or name gains by one."""

    async def main(door):
        def some(count):
            return bytes(range(count))

        token = await issue_token(door.documents, some, now_ms=door.clock.now_ms(), lifetime_ms=60_000, grants={})
        assert (await door.join(token=token))[0] == 201
        assert (await door.join(token=token))[0] == 201
        assert (await door.join(node="n2", document={"id": "n2", "site": "east"}, token=token))[0] == 401
        assert (await door.join(node="n2", document={"id": "n2", "site": "east"}, token=token, key=STRANGER))[0] == 401

    play(main, token="")


def test_a_receipt_is_published_with_its_exact_bytes_and_a_signature_that_still_verifies(play):
    """Proves the way of a receipt: acknowledged when on the log, bytes and stamp intact for whoever verifies later."""

    async def main(door):
        await door.join()
        assert await door.send(door.record(accepted(), sequence=7)) == (200, {"accepted": 7, "refused": []})

    door = play(main)
    (receipt,) = door.on(streams.RUNS)
    stamp = receipt.envelope.stamp
    fields = stated_fields(receipt.body, node=stamp.node, session=stamp.session, sequence=stamp.sequence)
    assert (stamp.sequence, receipt.key, receipt.envelope.id) == (7, "default/t1", "e7")
    assert verify_receipt(door.key.public_key(), receipt.value, fields, bytes.fromhex(stamp.signature))


def _twisted(door):
    good = door.record(accepted())
    return {
        "unsigned": {**good, "signature": ""},
        "wrongly signed": door.record(accepted(), key=STRANGER),
        "another sequence": {**good, "sequence": 2},
        "another session": {**good, "session": "other"},
        "other bytes": {**good, "value": good["value"].replace('"epoch":1', '"epoch":2')},
        "in another's name": door.record(accepted(node="n2")),
        "another key": {**good, "key": "default/t2"},
        "not hexadecimal": {**good, "signature": "zz"},
        "another stream": {**good, "stream": "probes"},
        "an unknown type": {**good, "type": "attempt.invented"},
        "what only placement says": {**good, "type": "task.ended"},
        "not base64": {**good, "encoding": "base64", "value": "*"},
        "a broken body": {**good, "value": '{"tenant":"default"}'},
        "not JSON": {**good, "value": "\udc80"},
    }


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("unsigned", 401, "is not signed"),
        ("wrongly signed", 401, "wrongly signed"),
        ("another sequence", 401, "wrongly signed"),
        ("another session", 401, "wrongly signed"),
        ("other bytes", 401, "wrongly signed"),
        ("in another's name", 401, "in the name of 'n2'"),
        ("another key", 400, "key: must be 'default/t1'"),
        ("not hexadecimal", 400, "signature: must be hexadecimal"),
        ("another stream", 400, "type: "),
        ("an unknown type", 400, "type: "),
        ("what only placement says", 400, "type: "),
        ("not base64", 400, "value: is not base64"),
        ("a broken body", 400, "task: "),
        ("not JSON", 400, ""),
    ],
)
def test_a_record_that_is_not_right_is_refused_with_its_reason(play, name, status, reason):
    """Proves that nothing unsigned, wrongly signed or unreadable gets onto the log, and that the reason is told."""

    async def main(door):
        await door.join()
        got, told = await door.send(_twisted(door)[name])
        assert got == status
        assert reason in (told["refused"][0]["reason"] if "refused" in told else told["error"]["message"])

    door = play(main)
    assert door.on(streams.RUNS) == []
    assert bool(door.on(streams.ALERTS)) == (status == 401)


def test_a_refused_record_is_let_go_with_its_answer(play):
    """Found: the refusal held the request through its traceback, until the collector looked."""
    held = []

    async def main(door):
        await door.join()
        gc.collect()
        gc.disable()
        try:
            await door.send({**door.record(accepted()), "value": "{}"})
            held.extend(one for one in gc.get_objects() if isinstance(one, RecordBody))
        finally:
            gc.enable()

    play(main)
    assert held == []


def test_one_bad_record_does_not_hold_up_the_others(play):
    """Proves that a batch is taken record by record and acknowledged as a whole."""

    async def main(door):
        await door.join()
        records = [{**door.record(accepted(f"t{n}"), sequence=n), "key": f"default/t{n}"} for n in (1, 2, 3)]
        records[1]["signature"] = ""
        status, told = await door.send(*records)
        assert (status, told["accepted"], [one["sequence"] for one in told["refused"]]) == (200, 3, [2])

    assert sorted(one.key for one in play(main).on(streams.RUNS)) == ["default/t1", "default/t3"]


def test_telemetry_carries_the_tag_of_its_session(play):
    """Proves that heartbeats need no signature but the session's tag, and samples need the signature."""

    async def main(door):
        await door.join()
        beat = NodeHeartbeat(node="n1", session=door.session, at_ms=1)
        assert (await door.send(door.record(beat, "telemetry", sequence=1)))[0] == 200
        assert (await door.send(door.record(beat, "telemetry", sequence=2, signature="00" * 16)))[0] == 401
        sample = LinkSampled(from_site="east", to_site="west", node="n1", at_ms=1)
        assert (await door.send(door.record(sample, "probes", sequence=3)))[0] == 200

    door = play(main)
    assert [one.envelope.type for one in door.on(streams.TELEMETRY)] == ["node.announced", "node.heartbeat"]
    assert len(door.on(streams.PROBES)) == 1


def test_requests_without_a_right_tag_are_turned_away(play):
    """Proves that path, method and body are all under the tag, and that the codes tell what to do."""

    async def main(door):
        await door.join()
        body = json.dumps({"records": []}).encode()
        target = "/v1/nodes/n1/records"
        right = door.tagged("POST", target, body)
        assert (await door.raw("POST", target, {}, body))[1]["error"]["code"] == "identity"
        for headers, sent in (
            (door.tagged("POST", "/v1/nodes/n2/records", body), body),
            (door.tagged("GET", target, body), body),
            (right, body + b" "),
            ({**right, "x-evenflow-session": "other"}, body),
            ({**right, "x-evenflow-tag": "zz"}, body),
        ):
            status, told = await door.raw("POST", target, headers, sent)
            assert (status, told["error"]["code"]) == (401, "session-unknown")
        assert (await door.raw("POST", target, right, body))[0] == 200

    play(main)


@pytest.mark.parametrize(
    ("body", "status", "path"),
    [
        (b"", 400, "body"),
        (b"[]", 400, "body"),
        (b"{", 400, "body"),
        (b'{"records": 1}', 400, "records"),
        (b'{"records": [], "more": 1}', 400, "more"),
        (b'{"records": [{"stream": "runs"}]}', 400, "records.0.type"),
        (b'{"records": [{"sequence": 1.5}]}', 400, "records.0.stream"),
        (b'{"records": [NaN]}', 400, "records.0"),
        (b"[" * 100_000, 400, "body"),
        (b'{"records": [' + b"{}," * 3 + b"{}]}", 400, "records.0.stream"),
        (b"\xff\xfe", 400, "body"),
        (b" " * 2_000_000, 413, ""),
    ],
)
def test_a_bad_body_is_answered_with_the_field_and_the_reason(play, body, status, path):
    """Proves that nothing a client sends ends the gateway or passes unread."""

    async def main(door):
        await door.join()
        got, told = await door.call("POST", "/records", body)
        assert (got, told["error"]["path"]) == (status, path)
        assert told["error"]["message"]

    play(main)


def test_too_many_records_and_too_long_headers_are_refused(play):
    """Proves the bounds on batches and headers."""

    async def main(door):
        await door.join()
        status, told = await door.send(*[door.record(accepted())] * 3)
        assert (status, told["error"]["path"]) == (400, "records")
        headers = {**door.tagged("GET", "/v1/nodes/n1/desired"), "x-long": "x" * 5_000}
        assert (await door.raw("GET", "/v1/nodes/n1/desired", headers))[0] == 413

    play(main, records_per_batch_max=2, header_bytes_max=4_096)


def test_a_log_that_does_not_confirm_is_a_503_and_nothing_is_acknowledged(play):
    """Proves that an agent keeps what the log did not take."""

    async def main(door):
        await door.join()
        record = door.record(accepted())

        async def away(*_: object, **__: object) -> None:
            raise Unavailable("the log did not confirm")

        door.host.outlet.send = away
        status, told = await door.send(record)
        assert (status, told["error"]["code"]) == (503, "unavailable")

    play(main)


def test_a_revoked_node_is_turned_away_everywhere(play):
    """Proves that revocation reaches open sessions and new ones."""

    async def main(door):
        await door.join()
        status = NodeChanged(
            node="n1", revision=2, document={}, session="s", reach=Reach.OK, administration=Administration.OPEN,
            health=Health.OK, revoked=True,
        )  # fmt: skip
        await door.outlet.publish(Fact(streams.NODES, status, id="r"))
        await door.clock.sleep(1)
        sent = await door.send(door.record(accepted()))
        for got, told in (await door.call("GET", "/desired"), sent, await door.join()):
            assert (got, told["error"]["code"]) == (403, "node-revoked")

    play(main)


def test_a_gateway_that_restarts_serves_the_same_sessions(play):
    """Proves statelessness: the session goes on at another process of the same pool."""

    async def main(door):
        await door.join()
        await door.host.stop()
        await door.begin()
        assert (await door.send(door.record(accepted())))[0] == 200

    play(main)


def test_a_secret_made_once_is_kept_for_the_next_gateway(play, monkeypatch):
    """Proves that without a given secret the pool's first gateway makes one and the others find it."""
    monkeypatch.setattr("evenflow.gateway.main.system_bytes", lambda count: bytes(range(count)))

    async def main(door):
        await door.join()
        assert (await door.documents.get("gateway_secrets", "sessions")).body == {"secret": bytes(range(32)).hex()}
        await door.begin(secret="")
        assert (await door.send(door.record(accepted())))[0] == 200

    play(main, secret="")
