"""The behaviour suite of the Documents port."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenflow.core.errors import Conflict, Refused
from evenflow.platform.stores.factory import open_documents
from evenflow.platform.stores.ports import Documents, Stored


async def _ids(store: Documents, collection: str = "tasks", **page: Any) -> list[str]:
    return [row.id async for row in store.scan(collection, **page)]


async def test_what_is_written_is_read_back_equal(documents: Documents) -> None:
    """Integers of 64 bits, text of any script, nesting and key order survive unchanged."""
    body = {"z": 2**63 - 1, "a": [-(2**63), 0.1, None, True], "text": "Zürich 東京 \u0000 🜁", "in.ner": {"": {}}}
    assert await documents.put("tasks", "t/1", body) == 1
    row = await documents.get("tasks", "t/1")
    assert row == Stored("t/1", 1, body)
    assert row is not None
    assert list(row.body) == list(body)


async def test_an_absent_document_is_none(documents: Documents) -> None:
    """Neither an unknown id nor an unknown collection is an error."""
    assert await documents.get("tasks", "nothing") is None
    assert await _ids(documents, "nodes") == []
    assert not await documents.delete("tasks", "nothing")


async def test_versions_grow_by_one_with_each_write(documents: Documents) -> None:
    """put answers the version that get then shows, for plain and conditional writes."""
    assert await documents.put("tasks", "t", {"n": 1}) == 1
    assert await documents.put("tasks", "t", {"n": 2}) == 2
    assert await documents.put("tasks", "t", {"n": 3}, expect=2) == 3
    assert await documents.get("tasks", "t") == Stored("t", 3, {"n": 3})


@pytest.mark.parametrize("expect", [0, 1, 3])
async def test_a_write_that_expects_another_version_changes_nothing(documents: Documents, expect: int) -> None:
    """A lost race is a Conflict and leaves body and version alone."""
    await documents.put("tasks", "t", {"n": 1})
    await documents.put("tasks", "t", {"n": 2})
    with pytest.raises(Conflict):
        await documents.put("tasks", "t", {"n": 9}, expect=expect)
    assert await documents.get("tasks", "t") == Stored("t", 2, {"n": 2})


async def test_expecting_absence_creates_once(documents: Documents) -> None:
    """expect=0 is create-only; expect=1 on an absent document is a Conflict."""
    with pytest.raises(Conflict):
        await documents.put("tasks", "t", {}, expect=1)
    assert await documents.put("tasks", "t", {"n": 1}, expect=0) == 1
    with pytest.raises(Conflict):
        await documents.put("tasks", "t", {"n": 2}, expect=0)


async def test_a_deleted_document_starts_again_at_version_one(documents: Documents) -> None:
    """Delete tells whether something was there, and a later write is a first one."""
    await documents.put("tasks", "t", {})
    await documents.put("tasks", "t", {})
    assert await documents.delete("tasks", "t")
    assert await documents.get("tasks", "t") is None
    assert await documents.put("tasks", "t", {}, expect=0) == 1


async def test_a_batch_writes_every_document_and_raises_each_version(documents: Documents) -> None:
    """New documents get version 1, old ones the next."""
    await documents.put("tasks", "b", {"n": 0})
    await documents.put_many("tasks", {"a": {"n": 1}, "b": {"n": 2}})
    await documents.put_many("tasks", {})
    assert [row async for row in documents.scan("tasks")] == [Stored("a", 1, {"n": 1}), Stored("b", 2, {"n": 2})]


async def test_a_batch_with_one_wrong_document_writes_none(documents: Documents) -> None:
    """The whole batch is checked before the store is touched."""
    with pytest.raises(Refused):
        await documents.put_many("tasks", {"a": {"n": 1}, "b": {"n": math.nan}})
    assert await _ids(documents) == []


async def test_a_scan_goes_in_order_of_id_by_prefix_and_page(documents: Documents) -> None:
    """Order is that of code points on every backend; prefix, after and limit combine."""
    ids = ["a", "a-", "a/1", "a/10", "a/2", "a/é", "a/\uffff", "a/🜁", "a0", "b", "Z"]
    for number, id_ in enumerate(reversed(ids)):
        await documents.put("tasks", id_, {"n": number})
    await documents.put("nodes", "a/3", {})
    assert await _ids(documents) == sorted(ids)
    inside = ["a/1", "a/10", "a/2", "a/é", "a/\uffff", "a/🜁"]
    assert await _ids(documents, prefix="a/") == inside
    assert await _ids(documents, prefix="a/", after="a/10", limit=2) == ["a/2", "a/é"]
    assert await _ids(documents, prefix="a/\uffff") == ["a/\uffff"]
    assert await _ids(documents, prefix="c") == []


async def test_a_scan_may_be_left_early(documents: Documents) -> None:
    """Leaving the loop half way needs no closing and disturbs no later call."""
    await documents.put_many("tasks", {f"t{n}": {} for n in range(5)})
    async for row in documents.scan("tasks"):
        assert row.id == "t0"
        break
    await documents.put("tasks", "t9", {})
    assert len(await _ids(documents)) == 6


async def test_a_drop_empties_one_collection_only(documents: Documents) -> None:
    """Other collections stay."""
    await documents.put("tasks", "t", {})
    await documents.put("nodes", "n", {})
    await documents.drop("tasks")
    assert await _ids(documents) == []
    assert await _ids(documents, "nodes") == ["n"]


async def test_the_store_shares_no_value_with_its_caller(documents: Documents) -> None:
    """Changing a body after writing or after reading changes nothing stored."""
    body: dict[str, Any] = {"list": [1]}
    await documents.put("tasks", "t", body)
    body["list"].append(2)
    row = await documents.get("tasks", "t")
    assert row is not None
    row.body["list"].append(3)
    assert await documents.get("tasks", "t") == Stored("t", 1, {"list": [1]})


@pytest.mark.parametrize(
    "body",
    [
        {"n": math.nan},
        {"n": math.inf},
        {"n": 2**63},
        {"n": -(2**63) - 1},
        {"s": "\ud800"},
        {"$set": 1},
        {"a": {"$where": 1}},
        {"k\0": 1},
        {"k\ud800": 1},
        {1: "number as key"},
        {"n": b"bytes"},
        {"n": {1, 2}},
        [],
        {"big": "x" * (8 * 2**20)},
    ],
    ids=lambda body: ascii(body)[:30],
)
async def test_a_body_that_some_backend_could_not_keep_is_refused(documents: Documents, body: Any) -> None:
    """Every backend refuses the same bodies and keeps nothing of them."""
    with pytest.raises(Refused) as caught:
        await documents.put("tasks", "t", body)
    assert not caught.value.retriable
    assert await documents.get("tasks", "t") is None


async def test_a_body_nested_too_deep_is_refused_with_a_short_message(documents: Documents) -> None:
    """The depth limit holds against recursion, and the message stays readable."""
    body: dict[str, Any] = {}
    for _ in range(5000):
        body = {"a": body}
    with pytest.raises(Refused) as caught:
        await documents.put("tasks", "t", body)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("id_", ["", "x" * 513, "é" * 257, "a\0b", "\ud800"], ids=lambda text: ascii(text)[:10])
async def test_a_bad_id_is_refused(documents: Documents, id_: str) -> None:
    """Ids are 1 to 512 bytes of UTF-8 without NUL."""
    with pytest.raises(Refused):
        await documents.put("tasks", id_, {})
    with pytest.raises(Refused):
        await documents.get("tasks", id_)


@pytest.mark.parametrize("collection", ["", "Tasks", "system.users", "a;drop table documents", "$cmd", "x" * 65])
async def test_a_bad_collection_is_refused(documents: Documents, collection: str) -> None:
    """Collection names are plain words, so none can reach into a server's own."""
    with pytest.raises(Refused):
        await documents.put(collection, "t", {})
    with pytest.raises(Refused):
        documents.scan(collection)


@pytest.mark.parametrize("bounds", [{"prefix": "\ud800"}, {"after": "a\0"}, {"after": "x" * 513}], ids=ascii)
async def test_a_page_bounded_by_what_is_no_id_is_refused(documents: Documents, bounds: dict[str, str]) -> None:
    """People's input may arrive here through a list's next page."""
    with pytest.raises(Refused):
        documents.scan("tasks", **bounds)  # type: ignore[arg-type]  # no limit among them


@pytest.mark.parametrize("limit", [0, -1, 10_001])
async def test_a_page_is_bounded(documents: Documents, limit: int) -> None:
    """No page is unlimited by accident."""
    with pytest.raises(Refused):
        documents.scan("tasks", limit=limit)


_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_KEYS = _TEXT.filter(lambda key: not key.startswith("$") and "\0" not in key)
_BODIES = st.dictionaries(
    _KEYS,
    st.recursive(
        _SCALARS | _TEXT, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3)
    ),
    max_size=4,
)
_STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "create", "update", "delete", "batch", "drop"]), st.sampled_from("abc"), _BODIES),
    max_size=12,
)


@given(steps=_STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_memory_and_sqlite_answer_any_history_alike(steps: list[tuple[str, str, dict[str, Any]]]) -> None:
    """The simulation's store and the product's give the same answers, versions and contents after any calls."""
    stores = [open_documents("memory:"), open_documents("sqlite::memory:")]
    for kind, id_, body in steps:
        answers = [await _apply(store, kind, id_, body) for store in stores]
        assert answers[0] == answers[1]
    left = [[row async for row in store.scan("tasks")] for store in stores]
    assert left[0] == left[1]
    for store in stores:
        await store.close()


async def _apply(store: Documents, kind: str, id_: str, body: dict[str, Any]) -> object:
    try:
        if kind == "put":
            return await store.put("tasks", id_, body)
        if kind == "create":
            return await store.put("tasks", id_, body, expect=0)
        if kind == "update":
            return await store.put("tasks", id_, body, expect=1)
        if kind == "delete":
            return await store.delete("tasks", id_)
        if kind == "batch":
            await store.put_many("tasks", {id_: body, "c": {}})
        else:
            await store.drop("tasks")
    except Conflict as error:
        return error.message
    return None
