"""What every error says: the cause in one short line, and the way out on lines of its own."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from millrace import errors
from tests.architecture.test_modules import sources, tree_of

ERRORS = {name for name, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)}
LONGEST_CAUSE = 120
"""Characters of a first line, values left out."""


def template(node: ast.expr) -> str | None:
    """The text of a literal, `{}` for each value in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def causes(path: Path) -> Iterator[tuple[int, str]]:
    """(line, first line of the message) of every error that a module raises in literal words."""
    for function in ast.walk(tree_of(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        said: dict[str, list[str]] = {}
        for node in ast.walk(function):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and (text := template(node.value))
            ):
                said.setdefault(node.targets[0].id, []).append(text)
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS and node.args:
                first = node.args[0]
                texts = said.get(first.id, []) if isinstance(first, ast.Name) else [template(first) or ""]
                yield from ((node.lineno, text.split("\n")[0]) for text in texts)


def test_the_first_line_of_an_error_is_its_cause_alone_and_short() -> None:
    found = [
        (path, *cause)
        for path in sources("millrace", "millrace_spark", "lakehouse_airflow", "embedded")
        for cause in causes(path)
    ]
    assert len(found) > 100, "the errors were not found"
    wrong = [f"{path}:{line}: {text}" for path, line, text in found if ". " in text or len(text) > LONGEST_CAUSE]
    assert wrong == [], "put the way out on a line of its own: SomeError(cause, way_out)"
