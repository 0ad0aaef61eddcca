"""The documentation names every field, and its examples are read by the doors."""

import re
from pathlib import Path

import pytest

from evenflow.events.documents.policy import parse_policy
from evenflow.events.documents.readiness import documented_fields
from evenflow.events.documents.reading import read_document
from evenflow.events.documents.task_specification import parse_task

DOCS = Path(__file__).parents[3] / "docs"


def page(name):
    return (DOCS / name).read_text(encoding="utf-8")


def example(name):
    found = re.search(r"```yaml\n(.*?)```", page(name), re.DOTALL)
    return read_document(found.group(1), source=name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("task", "task-specification.md"),
        ("policy", "policy.md"),
        *((kind, "fleet-documents.md") for kind in ("node", "site", "link", "dataset", "queue")),
    ],
)
def test_every_field_stands_in_the_documentation(kind, name):
    """A field that is read and not written down is a secret."""
    prose = re.sub(r"```.*?```", "", page(name), flags=re.DOTALL)
    words = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`[^`]+`", prose))))
    for path in documented_fields()[kind]:
        assert path.replace("[]", "").rsplit(".", 1)[-1] in words, path


def test_the_examples_are_read():
    """What a reader copies works."""
    task = parse_task(example("task-specification.md"))
    assert task.resources.devices.count == 1
    assert parse_policy(example("policy.md")).crossing.margin_ppm == 250_000
