"""Topics are made from the registry, and a topic that differs from it is named with its mend."""

from __future__ import annotations

import pytest
from tests.contract.log.conftest import CountedIds, Settings, StoppableClock

from evenflow.core.errors import Conflict, Refused
from evenflow.platform.broker.factory import make_transport


async def test_provisioning_again_changes_nothing(cluster):
    """Proves that every process may provision at its start."""
    settings = Settings(cluster.name("topic"), 3, {"cleanup.policy": "compact"})
    await cluster.transport.provision([settings])
    producer = await cluster.producer()
    await producer.send_and_wait(settings.name, b"v", key=b"k")
    await cluster.transport.provision([settings])
    assert cluster.consumer().partitions_for_topic(settings.name) in ({0, 1, 2}, None)
    reader = await cluster.started(settings.name)
    assert len(await cluster.read(reader, 1)) == 1


async def test_another_number_of_partitions_is_refused_with_its_mend(cluster):
    """Proves that keys are never re-dealt silently."""
    name = cluster.name("topic")
    await cluster.transport.provision([Settings(name, 4)])
    with pytest.raises(Conflict, match=r"has 4 partitions and the registry says 16.*new major") as refused:
        await cluster.transport.provision([Settings(name, 16)])
    assert refused.value.fields == {"topic": name, "found": 4, "wanted": 16}


async def test_another_setting_is_refused_with_its_mend(cluster):
    """Proves that a topic which would expire too early is found at the start."""
    name = cluster.name("topic")
    await cluster.transport.provision([Settings(name, 1, {"retention.ms": "1000000"})])
    with pytest.raises(Conflict, match=r"retention.ms=1000000 and the registry says 2000000.*alter"):
        await cluster.transport.provision([Settings(name, 1, {"retention.ms": "2000000"})])


async def test_settings_nobody_knows_are_refused(cluster):
    """Proves that a misspelt setting never becomes a silent default."""
    with pytest.raises(Refused):
        await cluster.transport.provision([Settings(cluster.name("topic"), 1, {"retention.hours": "5"})])
    with pytest.raises(Refused):
        await cluster.transport.provision([Settings(cluster.name("topic"), 1, {"cleanup.policy": "forget"})])


async def test_a_refused_list_creates_nothing(embedded):
    """Proves that provisioning is all or nothing."""
    good, bad = embedded.name("good"), embedded.name("bad")
    with pytest.raises(Refused):
        await embedded.transport.provision([Settings(good), Settings(bad, 1, {"retention.ms": "soon"})])
    assert good not in embedded.log.topics


async def test_settings_of_an_embedded_topic_can_be_altered(embedded):
    """Proves the mend: a folder of an earlier release gets the registry's new settings and keeps its records."""
    name = embedded.name("topic")
    await embedded.transport.provision([Settings(name, 1, {"retention.ms": "1000"})])
    await (await embedded.producer()).send_and_wait(name, b"v", key=b"k", partition=0)
    newer = Settings(name, 1, {"retention.ms": "2000"})
    embedded.log.alter(newer)
    await embedded.transport.provision([newer])
    assert await embedded.values(name, 1) == [b"v"]


@pytest.mark.parametrize(
    "url", ["redis://x", "kafka://", "kafka://h:1?replication=0", "kafka://h:1?acks=1", "/some/folder", ""]
)
def test_a_url_that_names_no_log_is_refused_with_the_ways_there_are(url):
    """Proves that a mistyped log is an error that says what to write."""
    with pytest.raises(Refused, match="embedded:/folder or kafka://host:port"):
        make_transport(url, clock=StoppableClock(), ids=CountedIds())


async def test_the_whole_registry_of_streams_can_be_provisioned(cluster):
    """Proves that every topic of the product, dead letters included, has settings that the log takes."""
    from evenflow.events.streams import topics

    wanted = topics()
    await cluster.transport.provision(wanted)
    await cluster.transport.provision(wanted)
    probe = cluster.consumer()
    await probe.start()
    for settings in wanted:
        assert len(probe.partitions_for_topic(settings.name) or ()) in (settings.partitions, 0)
