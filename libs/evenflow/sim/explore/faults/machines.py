"""Faults of machines, devices, sites and links."""

from __future__ import annotations

from typing import Final

from evenflow.sim.explore.faults.fault import Fault
from evenflow.sim.explore.scene import Scene


def _lost(scene: Scene) -> None:
    # The two widest nodes come back, so that what was satisfiable stays so.
    node, at_s = scene.chance.choice(scene.node_ids()), scene.moment()
    scene.step(at_s, "node", {"kill": node})
    if node in scene.node_ids()[:2] or scene.chance.random() < 0.7:
        scene.step(at_s + scene.span(1, 150), "node", {"restart": node})


def _flapping(scene: Scene) -> None:
    node, at_s = scene.chance.choice(scene.node_ids()), scene.moment(1, 150)
    for _ in range(scene.chance.randint(2, 5)):
        scene.step(at_s, "node", {"kill": node})
        at_s += scene.span(0.5, 50)
        scene.step(at_s, "node", {"restart": node})
        at_s += scene.span(0.5, 20)


def _removed(scene: Scene) -> None:
    if len(scene.nodes) > 4:
        scene.step(scene.moment(), "node", {"remove": scene.node_ids()[-1]})
    scene.step(scene.moment(), "node", {"add": {"id": "late", "site": scene.site_ids()[0], "cpu": 8}})


def _operator(scene: Scene) -> None:
    node, at_s = scene.chance.choice(scene.node_ids()), scene.moment()
    order = {"drain": node, "deadline_s": round(scene.span(5, 60))} if scene.chance.random() < 0.6 else {"cordon": node}
    scene.step(at_s, "node", order)
    scene.step(at_s + scene.span(5, 100), "node", {"uncordon": node})


def _cut(party: str) -> Fault:
    def plan(scene: Scene) -> None:
        link = scene.chance.choice(scene.links)
        who = {
            "node": scene.chance.choice(scene.node_ids()),
            "site": scene.chance.choice(scene.site_ids()),
            "link": [link["from"], link["to"]],
        }[party]
        at_s = scene.moment()
        for _ in range(scene.chance.randint(1, 3)):
            scene.step(at_s, "cut", {party: who})
            at_s += scene.span(1, 120)
            scene.step(at_s, "join", {party: who})
            at_s += scene.span(1, 20)

    return Fault(f"{party}-cut", f"messages of a {party} stop and flow again, once or more", plan)


def _slow_link(scene: Scene) -> None:
    link = scene.chance.choice(scene.links)
    bandwidth = scene.chance.choice(("1Mbit/s", "50Mbit/s"))
    ends, at_s = {"from": link["from"], "to": link["to"]}, scene.moment()
    scene.step(at_s, "link", {**ends, "bandwidth": bandwidth, "loss": scene.chance.choice((0, 0.2))})
    # Data would take hours over such a link: it recovers, as every fault ends.
    scene.step(at_s + scene.span(10, 120), "link", {**ends, "bandwidth": link["bandwidth"], "loss": 0})


def _device(scene: Scene) -> None:
    for _ in range(scene.chance.randint(1, 2)):
        node = scene.chance.choice([node for node in scene.nodes if "devices" in node])
        index, at_s = scene.chance.randrange(node["devices"]["count"]), scene.moment()
        change = scene.chance.choice(("break", "leftover"))
        scene.step(at_s, "device", {"node": node["id"], "index": index, change: True})
        scene.step(at_s + scene.span(5, 120), "device", {"node": node["id"], "index": index, "repair": True})


def _silent(scene: Scene) -> None:
    scene.step(scene.moment(), "telemetry", {"node": scene.chance.choice(scene.node_ids()), "silent": True})


FAULTS: Final = (
    Fault("node-lost", "a machine is gone with all it runs, and mostly comes back empty", _lost),
    Fault("node-flapping", "a machine goes and comes again and again", _flapping),
    Fault("node-removed", "a node leaves for good, another comes", _removed),
    Fault("node-drained", "an operator drains or closes a node and opens it again", _operator),
    _cut("node"),
    _cut("site"),
    _cut("link"),
    Fault("link-degraded", "a link is slow and loses packets", _slow_link),
    Fault("device-broken", "a device fails or is held by a leftover process, and is repaired", _device),
    Fault("telemetry-silent", "heartbeats without readings", _silent),
)
