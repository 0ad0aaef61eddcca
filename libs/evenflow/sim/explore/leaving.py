"""What can be left out of a scenario document, and the document without it.

Nothing here changes a document: every function returns a new one that shares what it did not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from evenflow.sim.explore.scene import Document

#: Keys and places that lead to a value.
Path = tuple[str | int, ...]
#: Verbs whose steps about one subject are one story: a fault and its end, a process and what happens to it.
STORIES: Final = ("node", "cut", "join", "service", "store", "device", "link")
SUBMITS: Final = ("submit", "repeat")
#: Fields of the file that are no content of the world.
FIXED: Final = ("version", "name", "about", "seed", "until", "steps", "expect")
#: Fields of the file that are one word.
SWITCHES: Final = ("impossible_steps", "start")
#: Fields that name what they stand in.
NAMES: Final = ("id", "from", "to", "site", "model")


# -- steps -------------------------------------------------------------------------------------------------------------
def verb_of(step: Document) -> str:
    """The verb of a step."""
    return next(name for name in step if name != "at")


def subjects_of(step: Document) -> dict[str, str]:
    """What a step is about, by kind: task, node, site, service, store."""
    verb = verb_of(step)
    arguments = step[verb]
    if not isinstance(arguments, dict):
        return {}
    found = {kind: arguments[kind] for kind in ("task", "node", "site") if isinstance(arguments.get(kind), str)}
    if verb == "submit" and isinstance(arguments.get("id"), str):
        found["task"] = arguments["id"]
    elif verb == "process":
        found |= _inner(arguments, "task")
    elif verb in ("node", "service", "store"):
        names = [value for value in arguments.values() if isinstance(value, str)]
        found |= {verb: names[0]} if names else {}
    elif verb == "dataset":
        found |= _inner(arguments, "site")
    return found


def _inner(arguments: Document, kind: str) -> dict[str, str]:
    named = [inner[kind] for inner in arguments.values() if isinstance(inner, dict) and kind in inner]
    return {kind: named[0]} if named else {}


def groups_of(document: Document) -> list[list[int]]:
    """Places of steps that belong together: about one task, or one story of a node, a service, a store."""
    groups: dict[str, list[int]] = {}
    for place, step in enumerate(document["steps"]):
        verb, subjects = verb_of(step), subjects_of(step)
        if "task" in subjects:
            key = f"task {subjects['task']}"
        elif verb in STORIES and subjects:
            key = " ".join(f"{kind} {name}" for kind, name in sorted(subjects.items()))
        else:
            key = f"step {place}"
        groups.setdefault(key, []).append(place)
    return list(groups.values())


def without_steps(document: Document, places: Sequence[int]) -> Document:
    """The document without the steps at those places."""
    gone = dict.fromkeys(places)
    return {**document, "steps": [step for place, step in enumerate(document["steps"]) if place not in gone]}


def without_groups(document: Document, groups: Sequence[Sequence[int]]) -> Document:
    """The document without the steps of those groups."""
    return without_steps(document, [place for group in groups for place in group])


def _without_steps_about(document: Document, kind: str, names: Sequence[str]) -> list[Document]:
    return [step for step in document["steps"] if subjects_of(step).get(kind) not in names]


# -- parts of the world ------------------------------------------------------------------------------------------------
def names_of(document: Document, kind: str) -> list[Any]:
    """What there is of one kind: ids, or the ends of links."""
    if kind in ("settings", "policy"):
        return list(document.get(kind, {}))
    if kind == "links":
        return [[link["from"], link["to"]] for link in document.get(kind, [])]
    return [entry["id"] for entry in document.get(kind, [])]


def without_nodes(document: Document, names: Sequence[str]) -> Document:
    """Without those nodes and the steps about them."""
    nodes = [node for node in document["nodes"] if node["id"] not in names]
    return {**document, "nodes": nodes, "steps": _without_steps_about(document, "node", names)}


def without_sites(document: Document, names: Sequence[str]) -> Document:
    """Without those sites, their nodes and links, copies of data there, and the steps about any of them."""
    nodes = [node["id"] for node in document.get("nodes", []) if node.get("site") in names]
    less = without_nodes(document, nodes) if nodes else dict(document)
    ends = [[link["from"], link["to"]] for link in document.get("links", []) if {link["from"], link["to"]} & {*names}]
    less = without_links(less, ends)
    for dataset in document.get("datasets", []):
        copies = [copy for copy in dataset.get("copies", []) if copy["site"] not in names]
        kept = [{**entry, "copies": copies} if entry["id"] == dataset["id"] else entry for entry in less["datasets"]]
        less = {**less, "datasets": kept}
    sites = [site for site in document.get("sites", []) if site["id"] not in names]
    return {**less, "sites": sites, "steps": _without_steps_about(less, "site", names)}


def without_links(document: Document, ends: Sequence[Sequence[str]]) -> Document:
    """Without those links and the steps about them."""
    links = [link for link in document.get("links", []) if [link["from"], link["to"]] not in ends]
    steps = [step for step in document["steps"] if _link_of(step) not in ends]
    return {**document, "links": links, "steps": steps}


def _link_of(step: Document) -> list[str]:
    verb = verb_of(step)
    arguments = step[verb] if isinstance(step[verb], dict) else {}
    if verb == "link":
        return [arguments.get("from", ""), arguments.get("to", "")]
    return list(arguments["link"]) if verb in ("cut", "join") and "link" in arguments else []


def without_queues(document: Document, names: Sequence[str]) -> Document:
    """Without those queues; their tasks go to the default queue."""
    less = {**document, "queues": [queue for queue in document["queues"] if queue["id"] not in names]}
    paths = [path for path, value in leaves(document) if path[-1] == "queue" and value in names]
    return without_paths(less, paths)


def without_datasets(document: Document, names: Sequence[str]) -> Document:
    """Without those datasets, what tasks read of them, and the steps about them."""
    datasets = [dataset for dataset in document["datasets"] if dataset["id"] not in names]
    steps = [step for step in document["steps"] if "dataset" not in step]
    less = {**document, "datasets": datasets, "steps": steps}
    return without_paths(less, [path[:-2] for path, value in leaves(less) if path[-1] == "dataset" and value in names])


def _without_keys(kind: str) -> Callable[[Document, Sequence[str]], Document]:
    return lambda document, names: without_paths(document, [(kind, name) for name in names])


#: How each kind of part is left out.
PARTS: Final[dict[str, Callable[[Document, Sequence[Any]], Document]]] = {
    "datasets": without_datasets,
    "queues": without_queues,
    "links": without_links,
    "sites": without_sites,
    "nodes": without_nodes,
    "settings": _without_keys("settings"),
    "policy": _without_keys("policy"),
}


# -- fields ------------------------------------------------------------------------------------------------------------
def task_fields(document: Document) -> list[tuple[str, Path]]:
    """Task and path of every field that a specification says, whole ones before what is inside them."""
    found: dict[tuple[str, Path], None] = {}
    for _, task in _specifications(document):
        found |= {(str(task["id"]), path): None for path in _paths(task) if path != ("id",)}
    return sorted(found, key=lambda item: len(item[1]))


def without_task_fields(document: Document, gone: Sequence[tuple[str, Path]]) -> Document:
    """Without those fields, in every submission of the task."""
    paths = [(*place, *path) for place, task in _specifications(document) for name, path in gone if name == task["id"]]
    return without_paths(document, paths)


def _specifications(document: Document) -> Iterator[tuple[Path, Document]]:
    for place, step in enumerate(document["steps"]):
        verb = verb_of(step)
        task = step["repeat"].get("submit") if verb == "repeat" else step.get("submit")
        if isinstance(task, dict) and "id" in task:
            yield (("steps", place, "repeat", "submit") if verb == "repeat" else ("steps", place, "submit")), task


def fields(document: Document) -> list[Path]:
    """Paths of what else may be left out: fields of nodes, sites, links, queues, datasets, and of steps' arguments."""
    found: list[Path] = [(name,) for name in SWITCHES if name in document]
    for kind, entries in document.items():
        if kind not in FIXED and isinstance(entries, list):
            for place, entry in enumerate(entries):
                found += [(kind, place, *path) for path in _paths(entry) if path[-1] not in NAMES]
    for place, step in enumerate(document["steps"]):
        verb = verb_of(step)
        if verb not in SUBMITS and isinstance(step[verb], dict) and len(step[verb]) > 1:
            found += [("steps", place, verb, name) for name in step[verb]]
    return found


def _paths(entry: Any, before: Path = ()) -> Iterator[Path]:
    if isinstance(entry, dict):
        for name, value in entry.items():
            yield (*before, name)
            yield from _paths(value, (*before, name))


def without_paths(document: Document, paths: Sequence[Path]) -> Document:
    """Without what stands at those paths; those that lead nowhere change nothing."""
    made: Document = document
    for path in sorted(paths, key=len, reverse=True):
        made = _without(made, path)
    return made


def _without(value: Any, path: Path) -> Any:
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        if key not in value:
            return value
        if not rest:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _without(value[key], rest)}
    if isinstance(value, list) and isinstance(key, int) and key < len(value) and rest:
        return [*value[:key], _without(value[key], rest), *value[key + 1 :]]
    return value


def leaves(value: Any, before: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every path that ends at a scalar, with the scalar."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, (*before, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from leaves(inner, (*before, place))
    else:
        yield before, value


def replaced(document: Document, changes: Sequence[tuple[Path, Any]]) -> Document:
    """With other values at those paths."""
    made: Any = document
    for path, value in changes:
        made = _with(made, path, value)
    return dict(made)


def _with(value: Any, path: Path, new: Any) -> Any:
    if not path:
        return new
    key, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {**value, key: _with(value[key], rest, new)}
    place = int(key)
    return [*value[:place], _with(value[place], rest, new), *value[place + 1 :]]
