"""The arithmetic of records: hashes and sizes."""

from __future__ import annotations

import pytest
from aiokafka.partitioner import murmur2
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from evenflow.platform.broker.embedded.records import key_hash, record_size


@settings(max_examples=40)
@given(st.binary(max_size=70))
def test_the_hash_of_a_key_is_kafkas(key):
    """Proves that any key has the partition Kafka's client would give it."""
    assert key_hash(key) == murmur2(key) & 0x7FFFFFFF


@settings(max_examples=40)
@given(
    st.one_of(st.none(), st.binary(max_size=300)),
    st.one_of(st.none(), st.binary(max_size=3_000)),
    st.lists(st.tuples(st.sampled_from(["ce_id", "tenant", "größe", "x" * 40]), st.binary(max_size=50)), max_size=5),
)
def test_the_size_of_a_record_is_the_clients_within_a_few_bytes(key, value, headers):
    """Proves that the limits of both profiles meet the same records (names in other scripts take more bytes)."""
    theirs = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, headers)
    ours = record_size(key, value, headers)
    slack = 12 + sum(len(name) + 8 for name, _ in headers)
    assert abs(ours - theirs) <= slack


@pytest.mark.parametrize("part", [{"key": "text"}, {"value": 1}, {"headers": [(b"name", b"v")]}])
def test_anything_but_bytes_is_refused(part):
    """Proves that a wrong type never reaches the batch of others."""
    with pytest.raises(TypeError):
        record_size(**{"key": b"k", "value": b"v", "headers": (), **part})
