"""The scenario format: strict, with the path of what is wrong; planned features named; nothing accepted and ignored."""

from __future__ import annotations

import pytest

from evenflow.events.documents.readiness import documented_fields
from evenflow.sim.expectations import FORMS
from evenflow.sim.scenario.catalogue import catalogue
from evenflow.sim.scenario.outcome import FAILS, HOLDS, PLANNED, WRONG, ScenarioPlanned, ScenarioWrong, together
from evenflow.sim.scenario.parse import parse_scenario
from evenflow.sim.verbs import VERBS
from evenflow.sim.verbs.publish import text_of

EXAMPLE = b"""
version: 1
name: limit-met-exactly
start: 2026-03-28T23:00:00Z
about: a limit met exactly is allowed
seed: 7
until: 700
settings: {heartbeat_s: 10, silence_tolerance_s: 30, stop_grace_s: 10, starvation_s: 60}
sites: [{id: east, region: r1, store: true, upload: 1Gbit/s}, {id: west}]
links: [{from: east, to: west, round_trip_ms: 30, bandwidth: 10Gbit/s, price_per_gb: "0.02"}]
nodes:
  - id: "n{i}"
    site: east
    rack: a
    devices: {model: a100-80g, count: 1, memory: 80GiB}
    price_per_hour: "4.00"
    copies: 3
queues: [{id: q, limit: {devices: "0.3", cpu: 10}}]
datasets: [{id: d, size: 50GB, residency: [r1], copies: [{site: east, authoritative: true}]}]
steps:
  - {at: 0, submit: {id: t1, queue: q, resources: {devices: {share: 0.1}}, run: {work_s: 600}}}
  - {at: 0.5, submit: {id: bad, resources: {devices: {share: NaN}}}}
  - {at: 1, repeat: {every_s: 10, times: 5, submit: {id: "r{i}"}}}
  - {at: 5, cancel: {task: t1}}
  - {at: 6, node: {drain: n1, deadline_s: 30}}
  - {at: 7, service: {kill: placement, which: leader, at_point: placement.before-commit}}
  - at: 8
    deliver: {topic: evenflow.runs.v1, match: {type: attempt.started}, action: duplicate, copies: 2, after_s: 3}
  - {at: 9, report: {task: t1, type: attempt.succeeded, at: 5, signed: false}}
  - {at: 20, settle: {}}
expect:
  - {at: 15, task: t1, is: running, node: n1}
  - {by: 540, task: t1, is: [succeeded, cancelled]}
  - {at: 15, task: t3, is: queued, reason: quota}
  - {any_of: [{at: 15, task: t1, is: running}, {by: 20, node: n1, is: draining}]}
  - {all: "t*", are: succeeded, by: 600}
  - {same: node, over: [t1, t2]}
  - {task: t1, attempts: {min: 1, max: 2}, failures: 0, starts: {node: n1, max: 1}}
  - {task: t1, attempt: 2, resumes_at_s: {min: 60, max: 60}, from_generation: 1}
  - {at: 250, task: t1, verified: [60]}
  - {at: 15, queue: q, used: {devices: "0.3"}}
  - {at: 30, node: n1, reach: ok, administration: open, health: quarantined, free: {devices: 1}}
  - {at: 30, device: n1/0, is: ok, used: "0.3"}
  - {at: 30, dataset: d, copies: [east]}
  - {between: [0, 700], count: started, task: "t*", min: 1}
  - ledger: {task: t1, kind: work, rows: 1, device_seconds: 25, amount: "1.25", tolerance: {device_seconds: 1}}
  - {ledger: {task: t1, amount: "1.25", tolerance: 0.02}}
  - {estimate: {task: t1, amount: "6.20", tolerance: "0.06"}}
  - {alert: node.baseline, subject: n1, by: 60}
  - {at: 15, task: t1, holds: {devices: 0}}
  - {at: 15, total: {cpu: 64, devices: 2}}
"""


def wrong(text: str) -> ScenarioWrong:
    """The refusal of a file made of the least that a file needs, and `text`."""
    with pytest.raises(ScenarioWrong) as caught:
        parse_scenario(f"version: 1\nuntil: 10\n{text}\n".encode())
    return caught.value


def planned(text: str) -> tuple[str, ...]:
    """The planned features that such a file uses."""
    with pytest.raises(ScenarioPlanned) as caught:
        parse_scenario(f"version: 1\nuntil: 10\n{text}\n".encode())
    return caught.value.paths


def test_the_documented_example_is_read_in_exact_units() -> None:
    """Times are milliseconds, shares milli, sizes bytes, money micro; copies are numbered; steps keep their order."""
    scenario = parse_scenario(EXAMPLE)
    assert [node["id"] for node in scenario.nodes] == ["n1", "n2", "n3"]
    assert scenario.start_ms == 1_774_738_800_000
    assert scenario.settings["silence_tolerance_s"] == 30_000
    assert scenario.queues[0]["limit"] == {"devices": 300, "cpu": 10_000}
    assert scenario.nodes[0]["price_per_hour"] == 4_000_000
    assert scenario.nodes[0]["devices"]["memory"] == 80 * 2**30
    assert scenario.links[0]["both_ways"] is True
    assert [step.at_ms for step in scenario.steps] == [0, 500, 1000, 5000, 6000, 7000, 8000, 9000, 20000]
    assert {expectation.form for expectation in scenario.expectations} == set(FORMS)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("colour: red", "colour"),
        ("nodes: [{id: n1, wheels: 4}]", "nodes[0].wheels"),
        ("nodes: [{id: N1}]", "nodes[0].id"),
        ("nodes: [{id: n1, cpu: 1.2345}]", "nodes[0].cpu"),
        ("nodes: [{id: n1, copies: 2}]", "nodes[0].id"),
        ("nodes: [{id: n1}, {id: n1}]", "nodes[1].id"),
        ("nodes: [{id: n1, labels: null}]", "nodes[0].labels"),
        ("sites: [{id: a}, {id: b}]\nnodes: [{id: n1}]", "nodes[0].site"),
        ("sites: [{id: a}]\nlinks: [{from: a, to: z}]", "links[0].to"),
        ("queues: [{id: q, parent: gone}]", "queues[0].parent"),
        ("settings: {heart_s: 1}", "settings.heart_s"),
        ("policy: {order: {ageing: 1}}", "policy.order.ageing"),
        ("settings: {starvation_s: 60}\npolicy: {order: {starvation_s: 90}}", "settings.starvation_s"),
        ("steps: [{at: 1, dance: {}}]", "steps[0].dance"),
        ("steps: [{at: 1}]", "steps[0]"),
        ("steps: [{submit: {}}]", "steps[0].at"),
        ("steps: [{at: 11, submit: {}}]", "steps[0].at"),
        ("steps: [{at: 1.0001, submit: {}}]", "steps[0].at"),
        ("steps: [{at: 1, node: {kill: n1, restart: n1}}]", "steps[0].node"),
        ("steps: [{at: 1, node: {skew: n1}}]", "steps[0].node.clock_s"),
        ("steps: [{at: 1, settle: {now: true}}]", "steps[0].settle"),
        (
            "steps: [{at: 1, deliver: {topic: evenflow.tasks.v1, action: drop}}]",
            "steps[0].deliver.action",
        ),
        ("expect: [{at: 1, node: n1, is: ok}]", "expect[0].is"),
        ("expect: [{at: 1, by: 2, task: t, is: running}]", "expect[0].by"),
        ("expect: [{at: 1, task: t, is: gone}]", "expect[0].is"),
        ("expect: [{at: 1, who: t}]", "expect[0]"),
        ("expect: [{any_of: [{at: 1, task: t, is: gone}]}]", "expect[0].any_of[0].is"),
        ("expect: [{count: started, task: t}]", "expect[0]"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(text: str, path: str) -> None:
    """Exit code 2, with the path of the field."""
    refusal = wrong(text)
    assert refusal.path == path
    assert refusal.exit_code == WRONG


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("nodes: [{id: n1, devices: {model: m, slices: [{profile: 1g, count: 1}]}}]", "nodes[0].devices.slices"),
        ("queues: [{id: q, guaranteed: {devices: 1}}]", "queues[0].guaranteed"),
        ("policy: {preemption: {by_priority: true}}", "policy.preemption.by_priority"),
        ("policy: {order: {backfill: off}}", "policy.order.backfill"),
        ("policy: {headroom: {node: {devices: 1}}}", "policy.headroom.node"),
        ("policy: {placement: {use: other}}", "policy.placement.use"),
        ("policy: {placement: {weights: {price: 2}}}", "policy.placement.weights"),
        ("policy: {order: {ageing_s: 61}}", "policy.order.ageing_s"),
        ("settings: {starvation_s: 61}", "settings.starvation_s"),
        ("policy: {fairness: {entry_penalty: false}}", "policy.fairness.entry_penalty"),
        ("policy: {retry: {memory_growth: 3}}", "policy.retry.memory_growth"),
        ("policy: {checkpoint: {copies: 2}}", "policy.checkpoint.copies"),
        ("queues: [{id: p}, {id: q, parent: p}]", "queues[1].parent"),
        ("queues: [{id: q, weight: 2}]", "queues[0].weight"),
        ("nodes: [{id: n1, class: core}]", "nodes[0].class"),
        ("sites: [{id: a, store: false}]", "sites[0].store"),
        ("steps: [{at: 1, policy: {set: {order: {starvation_s: 61}}}}]", "steps[0].policy.set.order.starvation_s"),
        ("steps: [{at: 1, submit: {id: t, image: i, secrets: {A: b}}}]", "steps[0].submit.image"),
        ("steps: [{at: 1, resize: {task: t, members: 2}}]", "steps[0].resize"),
        ("steps: [{at: 1, window: {nodes: [n1]}}]", "steps[0].window"),
        ("steps: [{at: 1, device: {node: n1, slow: 0.7}}]", "steps[0].device.slow"),
        ("steps: [{at: 1, node: {reclaim: n1}}]", "steps[0].node.reclaim"),
        ("steps: [{at: 1, submit: {id: t, groups: [{size: 8, level: node}]}}]", "steps[0].submit.groups"),
        ("steps: [{at: 1, submit: {id: t, members: [{}, {}]}}]", "steps[0].submit.members"),
    ],
)
def test_a_planned_feature_is_named_and_ends_with_its_own_code(text: str, path: str) -> None:
    """Exit code 3, and the default value of a planned field is no use of it."""
    assert path in planned(text)


def test_a_planned_field_at_its_default_is_accepted() -> None:
    """Writing out what holds anyway uses nothing planned."""
    text = b"version: 1\nuntil: 1\npolicy: {preemption: {reclaim: true, minimum_run_s: 0}, moves: {on: false}}\n"
    text += b"settings: {starvation_s: 60, half_life_s: 604800}\n"
    assert parse_scenario(text).policy["moves"] == {"on": False}


def test_a_wrong_file_is_wrong_even_if_it_uses_planned_features() -> None:
    """2 beats 3 within a file, 1 beats 2 beats 3 over several."""
    assert wrong("steps: [{at: 1, resize: {task: t, members: 2}}, {at: 1, dance: {}}]").path == "steps[1].dance"
    assert together([HOLDS, PLANNED]) == PLANNED
    assert together([PLANNED, WRONG]) == WRONG
    assert together([WRONG, FAILS, PLANNED]) == FAILS
    assert together([]) == HOLDS


def test_a_hostile_specification_is_left_to_the_door() -> None:
    """`submit` and `node: add` take anything: what is wrong with them is the product's to say."""
    text = b"""
version: 1
until: 10
steps:
  - {at: 0, submit: {id: t1, resources: {devices: {share: -Infinity}}, members: 2.5, priority: NaN, wheels: 4}}
  - {at: 0, submit: just a text}
  - {at: 0, node: {add: {id: nx, cpu: -4}}}
"""
    scenario = parse_scenario(text)
    assert scenario.steps[0].arguments["resources"]["devices"]["share"] == float("-inf")
    assert scenario.steps[1].arguments == "just a text"
    assert scenario.steps[2].arguments["add"] == {"id": "nx", "cpu": -4}


def test_the_catalogue_covers_every_registry_and_plans_only_what_may_be_planned() -> None:
    """Each verb, field, policy key and expectation is listed with its status."""
    found = catalogue()
    assert [row["verb"] for row in found["verbs"]] == list(VERBS)
    assert [row["form"] for row in found["expectations"]] == list(FORMS)
    assert {row["verb"] for row in found["verbs"] if row["status"] == "planned"} == {"resize", "window"}
    planned_fields = {row["field"] for row in found["fields"] if row["status"] == "planned"}
    assert {"nodes[].devices.slices", "queues[].guaranteed", "queues[].budget"} <= planned_fields
    assert not [row for row in found["expectations"] if row["status"] == "planned"]
    for row in (*found["fields"], *found["policy"], *found["settings"]):
        assert row["status"] in ("ready", "planned"), row


def test_scenarios_and_the_product_plan_the_same_fields() -> None:
    """A field that the product's own doors refuse as planned is planned in a file too, and the other way round."""
    found = catalogue()
    places = {
        "nodes[].": "node",
        "sites[].": "site",
        "links[].": "link",
        "queues[].": "queue",
        "datasets[].": "dataset",
    }
    rows = {("policy", row["field"]): row["status"] for row in found["policy"]}
    for row in found["fields"]:
        for place, kind in places.items():
            if row["field"].startswith(place):
                rows[kind, row["field"].removeprefix(place)] = row["status"]
    for kind in ("policy", *places.values()):
        for field, status in documented_fields()[kind].items():
            assert rows.get((kind, field), status) == status, (kind, field)
            if kind == "policy":
                assert (kind, field) in rows
    named = {row["field"] for row in found["task_fields"]} - {"replicas", "members[]"}
    assert named == {
        name for name, state in documented_fields()["task"].items() if state == "planned" and "[" not in name
    }


def test_a_published_value_can_be_put_together_from_pieces() -> None:
    """Large and deep values are said in a line; one step says one kind of value."""
    steps = b"""
steps:
  - at: 0
    publish:
      topic: evenflow.tasks.v1
      key: default/x
      pieces: [{text: '{"labels":{'}, {text: '"l{i}":"v",', times: 3}, {text: '"z":1}}'}]
"""
    head = b"version: 1\nuntil: 1\n"
    [step] = parse_scenario(head + steps).steps
    assert [text_of(piece) for piece in step.arguments["pieces"]] == [
        '{"labels":{',
        '"l1":"v","l2":"v","l3":"v",',
        '"z":1}}',
    ]
    with pytest.raises(ScenarioWrong, match="one of value, bytes_base64, pieces"):
        parse_scenario(head + steps + b"      value: 1\n")
