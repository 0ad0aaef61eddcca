"""From the bytes of a scenario file to a `Scenario`, or to the reason why not.

A wrong file is found before a planned feature: both in one file is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evenflow.core.errors import FieldRefused
from evenflow.events.documents.reading import Unreadable, read_document
from evenflow.sim.expectations import FORMS, recognise
from evenflow.sim.scenario import kinds
from evenflow.sim.scenario.file import FILE, Expectation, Scenario, Step
from evenflow.sim.scenario.outcome import ScenarioPlanned, ScenarioWrong
from evenflow.sim.scenario.policy import check_agreement
from evenflow.sim.scenario.schema import Reading, Values
from evenflow.sim.scenario.written import documents_of
from evenflow.sim.verbs import VERBS

#: The site of nodes in a file that names none.
UNNAMED_SITE: Final = "site"


def parse_scenario(data: bytes, *, name: str = "scenario", seed: int | None = None) -> Scenario:
    """Read one file. `name` is its stem, `seed` overrides the file's.

    Raises ScenarioWrong with the field's path, or ScenarioPlanned with the planned features that it uses.
    """
    try:
        document = read_document(data, source=name)
    except Unreadable as refusal:
        raise ScenarioWrong("", refusal.message) from None
    return scenario_of(document, name=name, seed=seed)


def scenario_of(document: object, *, name: str = "scenario", seed: int | None = None) -> Scenario:
    """Read a document that has been read already; raises as `parse_scenario`."""
    reading = Reading()
    try:
        values = FILE.read(document, "", reading)
        check_agreement(values["settings"], values["policy"])
        steps = [_step(entry, number, reading) for number, entry in enumerate(values["steps"])]
        expectations = [_expectation(entry, number, reading) for number, entry in enumerate(values["expect"])]
        _check_references(values)
        _check_times(values, steps)
        nodes = _copies(values["nodes"])
        documents = documents_of(document if isinstance(document, Mapping) else {}, values)
    except FieldRefused as refusal:
        raise ScenarioWrong(refusal.path, refusal.problem) from None
    if reading.planned:
        raise ScenarioPlanned(reading.planned)
    return Scenario(
        name=values["name"] or name,
        start_ms=values["start"],
        about=values["about"],
        seed=values["seed"] if seed is None else seed,
        until_ms=values["until"],
        settings=values["settings"],
        policy=values["policy"],
        documents=documents,
        sites=values["sites"],
        links=values["links"],
        nodes=nodes,
        queues=values["queues"],
        datasets=values["datasets"],
        steps=sorted(steps, key=lambda step: (step.at_ms, step.number)),
        expectations=expectations,
        skips_impossible_steps=values["impossible_steps"] == "skip",
    )


def _step(entry: Values, number: int, reading: Reading) -> Step:
    path = kinds.path_of_list("steps", number)
    if "at" not in entry:
        raise FieldRefused(f"{path}.at", "is required")
    at_ms: int = kinds.SECONDS.read(entry["at"], f"{path}.at", reading)
    given = [str(key) for key in entry if key != "at"]
    if len(given) != 1:
        raise FieldRefused(path, f"needs exactly one verb beside `at`; found {', '.join(given) or 'none'}")
    verb = VERBS.get(given[0])
    where = f"{path}.{given[0]}"
    if verb is None:
        raise FieldRefused(where, f"unknown verb; known are {', '.join(VERBS)}")
    arguments = verb.arguments.read(entry[given[0]], where, reading)
    if verb.status == "planned":
        reading.planned.append(where)
    return Step(at_ms, verb.name, arguments, number)


def _expectation(entry: Values, number: int, reading: Reading) -> Expectation:
    path = kinds.path_of_list("expect", number)
    return read_expectation(entry, path, number, reading)


def read_expectation(entry: Values, path: str, number: int, reading: Reading) -> Expectation:
    """One expectation; those inside `any_of` are read the same way."""
    form = FORMS[recognise(entry, path)]
    if form.status == "planned":
        reading.planned.append(path)
    values = form.form.read(entry, path, reading)
    if form.name == "any_of":
        values["any_of"] = [
            read_expectation(inner, f"{path}.any_of[{place}]", place, reading)
            for place, inner in enumerate(values["any_of"])
        ]
    return Expectation(form.name, values, entry, number)


def _copies(nodes: list[Values]) -> list[Values]:
    """Each node that the entries make, `{i}` replaced; names must differ."""
    made: list[Values] = []
    for place, entry in enumerate(nodes):
        count = entry["copies"]
        if count > 1 and "{i}" not in entry["id"]:
            raise FieldRefused(f"nodes[{place}].id", "needs {i} to number its copies")
        for number in range(1, count + 1):
            node = {**entry, "id": entry["id"].replace("{i}", str(number))}
            if entry["rack"] is not None:
                node["rack"] = entry["rack"].replace("{i}", str(number))
            made.append(node)
    return made


def _check_references(values: Values) -> None:
    for kind in ("sites", "queues", "datasets", "nodes"):
        _check_distinct(values[kind], kind)
    sites = [entry["id"] for entry in values["sites"]]
    for place, entry in enumerate(values["nodes"]):
        if entry["site"] is None and len(sites) > 1:
            raise FieldRefused(f"nodes[{place}].site", f"is required: there are {len(sites)} sites")
        entry["site"] = entry["site"] or (sites[0] if sites else UNNAMED_SITE)
        _check_known(entry["site"], sites or [entry["site"]], f"nodes[{place}].site", "site")
    for place, entry in enumerate(values["links"]):
        for end in ("from", "to"):
            _check_known(entry[end], sites, f"links[{place}].{end}", "site")
    queues = ["root", *(entry["id"] for entry in values["queues"])]
    for place, entry in enumerate(values["queues"]):
        _check_known(entry["parent"], queues, f"queues[{place}].parent", "queue")
    for place, entry in enumerate(values["datasets"]):
        for number, copy in enumerate(entry["copies"]):
            _check_known(copy["site"], sites or [copy["site"]], f"datasets[{place}].copies[{number}].site", "site")


def _check_distinct(entries: list[Values], kind: str) -> None:
    seen: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if entry["id"] in seen:
            raise FieldRefused(f"{kind}[{place}].id", f"{entry['id']} is already {kind}[{seen[entry['id']]}]")
        seen[entry["id"]] = place


def _check_known(name: str, known: list[str], path: str, kind: str) -> None:
    if name not in known:
        raise FieldRefused(path, f"there is no {kind} {name}")


def _check_times(values: Values, steps: list[Step]) -> None:
    for step in steps:
        if step.at_ms > values["until"]:
            raise FieldRefused(f"steps[{step.number}].at", "is after `until`")
