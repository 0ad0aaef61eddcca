"""What code must not do: show the order of a set, start threads, hand handlers more than a body, reach out of core."""

from __future__ import annotations

import ast

SET_METHODS = ("union", "intersection", "difference", "symmetric_difference")
SET_OPERATORS = (ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor)
ORDER_FREE = ("sorted", "set", "frozenset", "sum", "min", "max", "any", "all", "len")
ORDER_KEEPING = ("list", "tuple", "iter", "enumerate", "join", "extend", "fromkeys")
THREADS = ("run_in_executor", "to_thread", "ThreadPoolExecutor", "ProcessPoolExecutor")

PURE = (
    *("__future__", "abc", "array", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses"),
    *("datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math"),
    *("numbers", "operator", "re", "statistics", "string", "struct", "types", "typing", "unicodedata", "zlib"),
    *("numpy", "weakref"),
)


def called(node: ast.AST) -> str:
    """The last name of what a call calls, or nothing."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def is_set(node: ast.AST) -> bool:
    """Whether an expression is plainly a set: a literal, a call, or arithmetic of sets or of dict keys."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in ("set", "frozenset")
        return isinstance(node.func, ast.Attribute) and node.func.attr in SET_METHODS and is_set(node.func.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, SET_OPERATORS):
        return any(is_set(side) or called(side) == "keys" for side in (node.left, node.right))
    return False


def set_iterations(tree: ast.Module) -> list[int]:
    """Lines where the order of a set's elements can show."""
    free: dict[int, None] = {}  # comprehensions whose order nobody sees
    lines: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.SetComp):
            free[id(node)] = None
        if called(node) in ORDER_FREE:
            free.update(dict.fromkeys(map(id, node.args)))
        if isinstance(node, ast.For | ast.AsyncFor) and is_set(node.iter):
            lines.append(node.lineno)
        if called(node) in ORDER_KEEPING and id(node) not in free and any(is_set(argument) for argument in node.args):
            lines.append(node.lineno)
        if isinstance(node, ast.Starred) and is_set(node.value):
            lines.append(node.lineno)
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp) and id(node) not in free:
            lines += [node.lineno for generator in node.generators if is_set(generator.iter)]
    return lines


def handlers_with_more_than_a_body(tree: ast.Module) -> list[str]:
    """Names of FastStream handlers that take anything besides one body (methods: besides self and it)."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not any(called(decorator) == "subscriber" for decorator in node.decorator_list):
                continue
            names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len([name for name in names if name != "self"]) != 1 or node.args.vararg or node.args.kwarg:
                found.append(node.name)
    return found


def imported(tree: ast.Module) -> list[str]:
    """Every module a file imports, with its full name."""
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return names


def test_no_code_lets_the_order_of_a_set_show(product):
    """Proves that no loop, list or text takes its order from a set, which changes with the hash seed."""
    assert [f"{source.path}:{line}" for source in product for line in set_iterations(source.tree)] == []


def test_an_iteration_over_a_set_is_found():
    """Proves that the check above can fail, and that sorting, counting and building sets pass."""
    bad = (
        "for x in {1, 2}: pass",
        "for x in set(a): pass",
        "for x in set(a) - set(b): pass",
        "for x in a.keys() | b.keys(): pass",
        "[x for x in frozenset(a)]",
        "list(set(a))",
        "', '.join({1})",
        "f(*set(a))",
        "for x in set(a).union(b): pass",
    )
    good = ("for x in sorted(set(a)): pass", "sum(x for x in set(a))", "{x for x in set(a)}", "x in {1, 2}")
    assert [text for text in (*bad, *good) if set_iterations(ast.parse(text))] == list(bad)


def test_nothing_starts_a_thread(product):
    """Proves that services stay on one loop, which is what lets the simulation run them on virtual time."""
    found = [
        f"{source.path}:{node.lineno}"
        for source in product
        for node in ast.walk(source.tree)
        if called(node) in THREADS
    ]
    assert not found, "\n".join(found)


def test_a_handler_takes_one_body_and_nothing_else(product):
    """Proves that no handler pays a worker thread per message for a second parameter."""
    found = [f"{source.path}: {name}" for source in product for name in handlers_with_more_than_a_body(source.tree)]
    assert not found, "\n".join(found)


def test_a_handler_with_a_second_parameter_is_found():
    """Proves that the check above can fail."""
    bad = ast.parse("@broker.subscriber('t')\nasync def on_fact(body, msg): pass")
    good = ast.parse("class A:\n    @broker.subscriber('t')\n    async def on_fact(self, body): pass")
    assert (handlers_with_more_than_a_body(bad), handlers_with_more_than_a_body(good)) == (["on_fact"], [])


def test_core_computes_and_does_nothing_else(product):
    """Proves that core imports numpy, itself and the part of the standard library that neither asks nor acts."""
    foreign = [
        f"{source.path}: {name}"
        for source in product
        if source.path.startswith("libs/evenflow/core/")
        for name in imported(source.tree)
        if name.split(".")[0] not in PURE and not name.startswith("evenflow.core")
    ]
    assert not foreign, "\n".join(foreign)
