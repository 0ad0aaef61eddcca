"""The shape of the tree: entries present, one namespace over two roots, packages and files of a readable size."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import PurePosixPath

FILE_LINES_MAX = 400
MAIN_LINES_MAX = 60
FUNCTION_LINES_MAX = 70
MODULES_MAX = 12

# Folders that hold one file per named entry grow with their list, not with confusion.
ONE_FILE_PER_ENTRY = (
    "libs/evenflow/sim/verbs",
    "libs/evenflow/sim/invariants",
    "libs/evenflow/sim/expectations",
    "libs/evenflow/core/placement/policies",
    "libs/evenflow/cli/commands",
    "libs/evenflow/testkit/mutants",
)

TOP = (
    "README.md",
    "Makefile",
    "pyproject.toml",
    "requirements.lock",
    "docker-compose.yml",
    ".ci/run",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE",
    "NOTICE",
)
FOLDERS = (
    *("libs/evenflow/" + name for name in ("core", "events", "platform", "client", "cli", "sim", "testkit")),
    *("services/evenflow/" + name for name in ("inventory", "placement", "link_probe", "checkpoint", "billing")),
    *("services/evenflow/" + name for name in ("gateway", "agent", "console")),
    "schemas",
    *("tests/" + name for name in ("unit", "contract", "scenarios", "simulation", "integration", "e2e", "bench")),
    *("deploy/" + name for name in ("docker", "helm", "otel", "grafana", "local")),
    "docs/adr",
)
TARGETS = (
    *("help", "setup", "dev", "demo", "fmt", "lint", "types", "test", "integration", "simulation", "e2e", "bench"),
    *("schemas", "up", "down", "check", "determinism", "rebuild", "explore"),
)


def long_functions(path: str, tree: ast.Module) -> list[str]:
    """Functions with more lines than allowed, as `path:line name lines`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{path}:{node.lineno} {node.name} has {lines} lines")
    return found


def test_every_entry_of_the_architecture_is_there(tracked):
    """Proves that no top-level file and no folder of the documented layout went missing."""
    missing = [name for name in TOP if name not in tracked]
    missing += [folder for folder in FOLDERS if not any(path.startswith(folder + "/") for path in tracked)]
    assert not missing, "\n".join(missing)


def test_evenflow_is_a_namespace_over_two_roots(tracked):
    """Proves that neither root claims the namespace, which would hide the other one's packages."""
    assert [path for path in tracked if path.endswith("evenflow/__init__.py")] == []


def test_every_package_says_what_it_is_and_ships_its_types(tracked, product):
    """Proves that each folder with code is a package, and each first-level package carries py.typed."""
    folders = dict.fromkeys(str(PurePosixPath(source.path).parent) for source in product)
    missing = [f"{folder}/__init__.py" for folder in folders if f"{folder}/__init__.py" not in tracked]
    first = dict.fromkeys("/".join(source.path.split("/")[:3]) for source in product)
    missing += [f"{folder}/py.typed" for folder in first if f"{folder}/py.typed" not in tracked]
    assert not missing, "\n".join(missing)


def test_every_module_has_a_docstring(sources):
    """Proves that a reader who opens any file, tests included, is told what it is for."""
    assert [source.path for source in sources if not ast.get_docstring(source.tree)] == []


def test_no_file_grows_past_its_cap(sources):
    """Proves that no file needs long scrolling: a larger one is two things, to be split by a word of the glossary."""
    long = []
    for source in sources:
        cap = MAIN_LINES_MAX if source.is_product and source.path.endswith("/main.py") else FILE_LINES_MAX
        lines = source.text.count("\n")
        if lines > cap:
            long.append(f"{source.path} has {lines} lines, at most {cap}")
    assert not long, "\n".join(long)


def test_no_function_grows_past_its_cap(sources):
    """Proves that each function fits on one screen."""
    assert [found for source in sources for found in long_functions(source.path, source.tree)] == []


def test_a_function_over_the_cap_is_found():
    """Proves that the check above can fail, also for async functions inside classes."""
    body = "        pass\n" * FUNCTION_LINES_MAX
    tree = ast.parse(f"class A:\n    async def long(self):\n{body}")
    assert long_functions("a.py", tree) == [f"a.py:2 long has {FUNCTION_LINES_MAX + 1} lines"]


def test_no_package_holds_too_many_modules(product):
    """Proves that a package can be taken in at a glance; folders of one file per named entry are exempt."""
    modules = Counter(
        str(PurePosixPath(source.path).parent) for source in product if not source.path.endswith("__init__.py")
    )
    crowded = [f"{folder}: {count}" for folder, count in modules.items() if count > MODULES_MAX]
    assert [entry for entry in crowded if entry.split(":")[0] not in ONE_FILE_PER_ENTRY] == []


def test_every_make_target_is_there_with_its_help_line(root):
    """Proves that `make help` lists every documented target and leaves none unexplained."""
    text = (root / "Makefile").read_text(encoding="utf-8")
    explained = re.findall(r"^([a-z0-9-]+):.*## \S", text, flags=re.MULTILINE)
    declared = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)", text, flags=re.MULTILINE)[0].replace("\\\n", " ").split()
    assert [name for name in (*TARGETS, *declared) if name not in explained] == []
