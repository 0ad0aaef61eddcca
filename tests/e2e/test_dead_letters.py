"""A record that nobody could apply: parked with its origin, shown, put back once its cause is mended, or set aside."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from evenflow.agent.clients.gateway import HttpGateway
from evenflow.agent.clients.http import HttpExchange
from evenflow.agent.journal import Outgoing
from evenflow.events.contracts.agent import LinkSampled
from evenflow.platform.security.identity import new_key
from evenflow.platform.security.signatures import sign_receipt
from evenflow.platform.security.stamps import stated_fields

PROBES = "evenflow.probes.v1"


async def _report_two_samples(gateway_url: str, token: str) -> None:
    """A node measures links that nobody declared: link-probe has no price and no baseline for them."""
    exchange, key = HttpExchange(gateway_url), new_key()
    gateway = HttpGateway(exchange, node="guest", key=key, token=token)
    session = await gateway.open_session({"id": "guest", "site": "south"}, booted_ms=0)
    records = []
    for sequence, target in enumerate(("moon", "mars"), start=1):
        body = LinkSampled(
            from_site="south", to_site=target, node="guest", at_ms=1, reachable=True, round_trip_us=9_000,
            bandwidth_bits=3_000_000_000,
        )  # fmt: skip
        value = body.__pydantic_serializer__.to_json(body)
        fields = stated_fields(body, node="guest", session=session.id, sequence=sequence)
        records.append(
            Outgoing(
                stream="probes",
                type=str(body.TYPE),
                id=f"sample-{target}",
                key="guest",
                time_ms=1,
                value=value.decode(),
                session=session.id,
                sequence=sequence,
                signature=sign_receipt(key, value, fields).hex(),
            )
        )
    taken = await gateway.send(session, records)
    assert (taken.accepted, taken.refused) == (2, ())
    await exchange.close()


def _links(dev: Any) -> dict[str, Any]:
    return {f"{row['from_site']}..{row['to_site']}": row for row in dev.get("/api/v1/links")["items"]}


def _letters(dev: Any, state: str = "open") -> dict[str, Any]:
    """Whole letters by the place that their sample speaks of; the newest of each."""
    found: dict[str, Any] = {}
    for row in dev.get("/api/v1/dlq", topic=PROBES, state=state)["items"]:
        letter = dev.get(f"/api/v1/dlq/{_place(row)}")
        found.setdefault(json.loads(letter["text"])["to_site"], letter)
    return found


def _place(row: dict[str, Any]) -> str:
    return f"{row['topic']}/{row['partition']}/{row['offset']}"


def test_a_parked_record_is_shown_put_back_after_its_cause_is_mended_and_applied(processes, folder):
    """Proves the whole way of a dead letter on the command line: list, show, retry too early, mend, retry, drop."""
    dev = processes.dev("--no-agents", "--no-load")
    asyncio.run(_report_two_samples(dev.gateway, dev.token))
    url = ("--url", dev.console)
    processes.until("both are parked", lambda: len(_letters(dev)) == 2)
    assert [name for name in _links(dev) if name.startswith("south")] == []
    listed = processes.json("dlq", "list", "--topic", "probes", *url)["items"]
    moon, mars = _letters(dev)["moon"], _letters(dev)["mars"]
    assert sorted(_place(row) for row in listed) == sorted([_place(moon), _place(mars)])
    shown = processes.json("dlq", "show", _place(moon), *url)
    assert (shown["code"], shown["service"], shown["key"]) == ("field-refused", "link-probe", "guest")
    assert "there is no link south" in shown["problem"]
    assert shown["origin"].startswith(f"{PROBES}/")
    headers = {header["name"]: header["value"] for header in shown["headers"]}
    assert (headers["ce_id"], headers["ce_type"]) == ("sample-moon", "link.sampled")

    processes.run("dlq", "retry", _place(moon), *url)  # nothing was mended: it is parked again, not lost
    processes.until("it is parked again", lambda: _letters(dev).get("moon", moon)["origin"] != moon["origin"])
    assert list(_letters(dev, "retried")) == ["moon"]

    document = folder / "link.json"
    document.write_text(json.dumps({"bandwidth": "10Gbit/s", "round_trip_ms": 10, "price_per_gb": "0.02"}))
    processes.run("documents", "put", "link", "south..moon", str(document), *url)
    processes.until("the link is declared", lambda: "south..moon" in _links(dev))
    assert _links(dev)["south..moon"]["sample_count"] == 0
    assert "put back" in processes.run("dlq", "retry", _place(_letters(dev)["moon"]), *url)
    processes.until("it is applied", lambda: _links(dev)["south..moon"]["sample_count"] == 1)

    processes.run("dlq", "drop", _place(mars), "--reason", "no such planet", *url)
    assert processes.json("dlq", "list", *url)["items"] == []
    assert list(_letters(dev, "dropped")) == ["mars"]
    dropped = dev.get("/api/v1/changes", subject=mars["origin"])["items"]
    assert [(row["action"], row["reason"]) for row in dropped] == [("dead-letter.drop", "no such planet")]
    assert dev.complained() == ""
