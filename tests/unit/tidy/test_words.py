"""Names and comments: no word that says nothing, no silenced check without its reason, no trace of a machine."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import PurePosixPath

BANNED_WORDS = ("util", "utils", "helper", "helpers", "common", "misc", "manager", "impl")
BANNED_CLASS = re.compile(r"(Manager|Helper|Helpers|Utils?|Misc|Impl)$")
NUMBERED = re.compile(r"(^|_)(part|file)?\d+$")
TEST_WORDS_MIN = 4

NOQA = re.compile(r"#\s*(ruff:\s*)?noqa\b")
NOQA_WITH_REASON = re.compile(r"#\s*noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*[ ,;:(#-]+[^\s#].{3,}")
IGNORE = re.compile(r"#\s*type:\s*ignore")
IGNORE_WITH_REASON = re.compile(r"#\s*type:\s*ignore\[[a-z0-9, -]+\]\s+#\s*(noqa: [A-Z0-9, ]+\s+)?\S.{3,}")
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")

# Written in halves, so that this file does not name them.
FOREIGN = [
    re.compile(re.escape(first + second))
    for first, second in (
        ("/work", "/"),
        ("/tmp/", "venv"),
        ("/root", "/"),
        ("/opt/", "wheels"),
        ("/home", "/"),
        ("pypi", ".org"),
        ("pythonhosted", ".org"),
        ("registry.npm", "js.org"),
        ("npm", "mirror.com"),
        ("proxy.go", "lang.org"),
        ("crates", ".io"),
        ("repo1.maven", ".org"),
        ("tuna.tsinghua", ".edu.cn"),
    )
]
TEXT_BYTES_MAX = 2_000_000


def bad_name(path: str) -> str | None:
    """The part of a path that says nothing, if any: a banned word or a number in place of a name."""
    for part in PurePosixPath(path).with_suffix("").parts[1:]:
        words = [word for word in re.split(r"[_\-.]", part) if word]
        if any(word in BANNED_WORDS for word in words) or NUMBERED.search(part):
            return part
    return None


def unreasoned(text: str) -> list[tuple[int, str]]:
    """Line and comment of each silenced check that lacks its code or its reason."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        bare_noqa = NOQA.search(token.string) and not NOQA_WITH_REASON.search(token.string)
        bare_ignore = IGNORE.search(token.string) and not IGNORE_WITH_REASON.search(token.string)
        if bare_noqa or bare_ignore:
            found.append((token.start[0], token.string))
    return found


def test_no_file_or_folder_has_a_name_that_says_nothing(tracked):
    """Proves that nobody opens a drawer called utils, and that a split file got a word of its own, not a number."""
    code = [path for path in tracked if path.endswith(".py")]
    assert [path for path in code if bad_name(path)] == []


def test_a_name_that_says_nothing_is_found():
    """Proves that the check above can fail, and that numbers belonging to a name pass."""
    assert bad_name("libs/evenflow/core/task_utils.py") == "task_utils"
    assert bad_name("libs/evenflow/core/engine_2.py") == "engine_2"
    assert bad_name("libs/evenflow/common/x.py") == "common"
    assert bad_name("libs/evenflow/platform/security/ed25519.py") is None


def test_no_class_has_a_name_that_says_nothing(sources):
    """Proves that classes are named for what they hold or do."""
    found = [
        f"{source.path}:{node.lineno} {node.name}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and BANNED_CLASS.search(node.name)
    ]
    assert not found, "\n".join(found)


def test_every_silenced_check_has_its_code_and_its_reason(sources):
    """Proves that each noqa and each type: ignore says which rule it silences, and why."""
    found = [f"{source.path}:{line} {text}" for source in sources for line, text in unreasoned(source.text)]
    assert not found, "\n".join(found)


def test_a_silenced_check_without_a_reason_is_found():
    """Proves that the check above can fail in each of its ways."""
    hash_ = "#"  # in the text below, so that this file passes its own test
    good = [f"x = 1  {hash_} noqa: S311  jitter, not secrets", f"y = 1  {hash_} type: ignore[misc]  # untyped base"]
    bad = [
        f"x = 1  {hash_} noqa",
        f"x = 1  {hash_} noqa: S311",
        f"y = 1  {hash_} type: ignore",
        f"y = 1  {hash_} type: ignore[misc]",
    ]
    assert [line for line in (*good, *bad) if unreasoned(line + "\n")] == bad


def test_nothing_is_left_unfinished(sources):
    """Proves that no marker of unfinished work and no method that only raises stands in the code."""
    marked = [source.path for source in sources if UNFINISHED.search(source.text)]
    raised = [
        f"{source.path}:{node.lineno}"
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.dump(node)
    ]
    assert not (marked + raised), "\n".join(marked + raised)


def test_every_test_is_a_sentence_and_says_what_it_proves(sources):
    """Proves that a failing test can be understood from its name and docstring alone."""
    unclear = []
    for source in sources:
        if not source.path.startswith("tests/") or not PurePosixPath(source.path).name.startswith("test_"):
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                words = node.name.removeprefix("test_").split("_")
                if len(words) < TEST_WORDS_MIN or not ast.get_docstring(node):
                    unclear.append(f"{source.path}:{node.lineno} {node.name}")
    assert not unclear, "\n".join(unclear)


def test_no_file_names_a_machine_or_a_package_registry(root, tracked):
    """Proves that the repository speaks of the product alone and installs from wherever its user's tools point."""
    found = []
    for path in tracked:
        data = (root / path).read_bytes()
        if len(data) > TEXT_BYTES_MAX or b"\0" in data[:4096]:
            continue
        text = data.decode("utf-8", "replace")
        found += [f"{path}: {pattern.pattern}" for pattern in FOREIGN if pattern.search(text)]
    assert not found, "\n".join(found)


def test_every_link_between_documents_leads_somewhere(root, tracked):
    """Proves that no relative link of a Markdown file points at a file that is not there."""
    broken = []
    for path in (path for path in tracked if path.endswith(".md")):
        text = (root / path).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target and not (root / path).parent.joinpath(target).exists():
                broken.append(f"{path}: {target}")
    assert not broken, "\n".join(broken)
