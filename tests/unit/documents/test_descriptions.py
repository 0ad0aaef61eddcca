"""Nodes, sites, links, datasets and queues: defaults, units and refusals."""

import pytest

from evenflow.core.errors import FieldRefused
from evenflow.core.fleet.description import (
    DatasetCopy,
    DatasetDescription,
    DeviceGroup,
    LinkDescription,
    NodeDescription,
    SiteDescription,
    Slice,
)
from evenflow.core.queueing.description import NOTHING, UNLIMITED, Limits, QueueDescription
from evenflow.events.documents.network import parse_dataset, parse_link, parse_site
from evenflow.events.documents.node import node_problems, parse_node
from evenflow.events.documents.queue import parse_queue


def path_of(parse, document):
    with pytest.raises(FieldRefused) as caught:
        parse(document)
    return caught.value.path


def test_a_node_has_the_documented_defaults():
    """64 cores, 512 GiB, 4 TB, a rack of its own, no devices, price 0."""
    node = parse_node({"id": "n1", "site": "east"})
    assert node == NodeDescription("n1", "east", None, 64_000, 512 * 2**30, 4 * 10**12, None, 0, 0, "normal", ())
    assert node.devices_milli == 0
    assert node.rack_id != parse_node({"id": "n2", "site": "east"}).rack_id
    assert parse_node({"id": "n1", "site": "east", "rack": "a"}).rack_id == "a"


def test_a_node_keeps_every_field_exactly():
    """Prices are per whole device and per core, in micro-units."""
    node = parse_node(
        {
            "id": "n1",
            "site": "east",
            "rack": "a",
            "cpu": "31.5",
            "memory": "256GiB",
            "disk": "1TB",
            "devices": {"model": "a100-80g", "count": 8, "slices": [{"profile": "1g.10gb", "count": 7}]},
            "price_per_hour": "4.00",
            "cpu_price_per_hour": "0.013",
            "class": "core",
            "labels": {"zone": "b"},
        }
    )
    assert (node.cpu_milli, node.disk_bytes, node.node_class, node.device_count) == (31_500, 10**12, "core", 8)
    assert (node.price_per_hour_micro, node.cpu_price_per_hour_micro) == (4_000_000, 13_000)
    assert node.devices.slices == (Slice("1g.10gb", 7),)
    assert node.devices_milli == 8_000


def test_device_memory_comes_from_the_catalogue_unless_it_is_given():
    """A model that is not listed has no known memory."""
    group = parse_node({"id": "n", "site": "s", "devices": {"model": "a100-80g"}}).devices
    assert (group.count, group.memory_bytes) == (1, 80 * 2**30)
    assert "bf16" in group.precisions
    assert "fp8" not in group.precisions
    given = {"model": "a100-80g", "count": 2, "memory": "40GiB", "precisions": ["fp16"]}
    assert parse_node({"id": "n", "site": "s", "devices": given}).devices.memory_bytes == 40 * 2**30
    assert parse_node({"id": "n", "site": "s", "devices": {"model": "g2"}}).devices == DeviceGroup("g2", 1, 0)
    assert parse_node({"id": "n", "site": "s", "devices": {"model": "g2", "count": 0}}).devices is None


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"id": "n"}, "site"),
        ({"site": "s"}, "id"),
        ({"id": "n", "site": "s", "copies": 3}, "copies"),
        ({"id": "n", "site": "s", "class": "big"}, "class"),
        ({"id": "n", "site": "s", "devices": {"slices": [{"profile": "1g"}]}}, "devices.slices[0].count"),
        ({"id": "n", "site": "s", "price_per_hour": 4}, "price_per_hour"),
        ({"id": "n{i}", "site": "s"}, "id"),
        ({"id": "n", "site": "s", "rack": "A"}, "rack"),
    ],
)
def test_a_wrong_node_is_refused_by_its_field(document, path):
    """The list of problems begins with the same one."""
    assert path_of(parse_node, document) == path
    assert node_problems(document)[0][0] == path


def test_a_site_needs_an_id_only():
    """Coordinates are the one thing that may be negative."""
    assert parse_site({"id": "east"}) == SiteDescription("east")
    assert parse_site({"id": "east"}).region_id != "east"
    site = parse_site({
        "id": "east", "region": "r1", "city": "São Paulo", "data_centre": "dc 1", "latitude": -23.5505,
        "longitude": "-46.6333", "owner": "lab", "store": False, "upload": "1Gbit/s",
    })  # fmt: skip
    assert (site.latitude_micro, site.longitude_micro, site.upload_bits) == (-23_550_500, -46_633_300, 10**9)
    assert site.region_id == "r1"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("latitude", 90.5),
        ("latitude", -91),
        ("longitude", float("nan")),
        ("longitude", "--1"),
        ("upload", 0),
        ("store", 1),
    ],
)
def test_a_wrong_site_is_refused_by_its_field(field, value):
    """Bounds of the globe, rates above zero."""
    assert path_of(parse_site, {"id": "east", field: value}) == field


def test_a_link_keeps_its_figures_exactly():
    """Round trips in microseconds, loss in parts per million, price per GB in micro-units; both ways unless said."""
    link = parse_link(
        {
            "from": "east",
            "to": "west",
            "round_trip_ms": 30.5,
            "bandwidth": "10Gbit/s",
            "loss": 0.001,
            "price_per_gb": "0.02",
        }
    )
    assert link == LinkDescription("east", "west", 10**10, 30_500, 1_000, 20_000, both_ways=True)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"to": "east"}, "to"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"bandwidth": "10GB"}, "bandwidth"),
        ({"loss": 1.5}, "loss"),
        ({"price_per_gb": 0.02}, "price_per_gb"),
        ({"round_trip_ms": -1}, "round_trip_ms"),
    ],
)
def test_a_wrong_link_is_refused_by_its_field(change, path):
    """A link joins two sites, carries something and loses at most all."""
    assert path_of(parse_link, {"from": "east", "to": "west", "bandwidth": "1Gbit/s", **change}) == path
    assert path_of(parse_link, {"from": "east", "to": "west"}) == "bandwidth"


def test_a_dataset_lists_its_copies():
    """One copy a site."""
    copies = [{"site": "east", "authoritative": True}, {"site": "west"}]
    dataset = parse_dataset({"id": "d", "size": "50GB", "residency": ["r1"], "copies": copies})
    assert dataset == DatasetDescription(
        "d", 50 * 10**9, ("r1",), (DatasetCopy("east", authoritative=True), DatasetCopy("west"))
    )
    assert path_of(parse_dataset, {"id": "d", "size": 1, "copies": [{"site": "a"}, {"site": "a"}]}) == "copies[1].site"
    assert path_of(parse_dataset, {"id": "d"}) == "size"


def test_a_queue_without_limits_is_promised_nothing_and_limited_by_nothing():
    """What is not said is no guarantee and no bound."""
    assert parse_queue({"id": "q"}) == QueueDescription("q", "root", NOTHING, UNLIMITED, UNLIMITED, UNLIMITED)


def test_a_queue_keeps_every_limit_exactly():
    """Three tenths of a device are 300 milli-devices, so that 0.1 + 0.2 meets them."""
    queue = parse_queue(
        {
            "id": "q",
            "parent": "lab",
            "guaranteed": {"devices": 4},
            "limit": {"devices": "0.3", "cpu": 10, "memory": "1GiB", "disk": 5},
            "borrowing_limit": {"devices": 0},
            "weight": 0.5,
            "order": "strict",
            "waiting_limit": 10,
            "budget": "1000",
        }
    )
    assert queue.guaranteed == Limits(0, 0, 0, 4_000)
    assert queue.limit == Limits(10_000, 2**30, 5, 300)
    assert queue.borrowing_limit == Limits(devices_milli=0)
    assert (queue.weight_milli, queue.waiting_limit, queue.budget_micro) == (500, 10, 10**9)


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"id": "root", "parent": "q"}, "parent"),
        ({"id": "q", "parent": "q"}, "parent"),
        ({"id": "q", "limit": {"gpus": 1}}, "limit.gpus"),
        ({"id": "q", "limit": {"devices": None}}, "limit.devices"),
        ({"id": "q", "limit": {"devices": "0.0001"}}, "limit.devices"),
        ({"id": "q", "budget": 1000}, "budget"),
        ({"limit": {}}, "id"),
    ],
)
def test_a_wrong_queue_is_refused_by_its_field(document, path):
    """The root is above all, and no queue stands under itself."""
    assert path_of(parse_queue, document) == path
    assert parse_queue({"id": "root"}).parent is None
