"""The expectation classes of a project's own, read from `expectations/*.py` beside its specs without running them.

Great Expectations, which these files import, takes seconds to import: only the driver runs them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from millrace.contracts.spec.arguments import COLUMN, Arguments
from millrace.settings import ProjectSettings

EXPECTATIONS = ProjectSettings().expectations
"""The folder of a project's own expectation classes, beside that of its specs; None if nothing says where these are."""

_BASES = {
    "BatchExpectation": Arguments(),
    "UnexpectedRowsExpectation": Arguments(),
    "ColumnAggregateExpectation": Arguments(required=("column",)),
    "ColumnMapExpectation": COLUMN,
    "ColumnPairMapExpectation": Arguments(("column_A", "column_B"), ("mostly",)),
    "MulticolumnMapExpectation": Arguments(("column_list",), ("mostly",)),
}
"""Class of Great Expectations that has no name of its own -> the arguments that it gives to its subclasses."""

_OF_ALL = frozenset({"description", "meta", "notes", "severity", "windows", "row_condition", "condition_parser"}) | {
    "unexpected_rows_query"
}
"""Fields of every expectation, which are no arguments of a spec."""

_ANY = {"type": ["string", "number", "boolean", "array", "object"]}
_TYPES = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "list": {"type": "array"},
    "dict": {"type": "object"},
}


@dataclass(frozen=True)
class CustomExpectation:
    """An expectation class of the project.

    Attributes:
        arguments: the arguments that a spec may give: its own fields, and those of the class that it extends.
        schemas: own field -> the JSON Schema of its value.
        digest: a digest of the file, and of those of the classes that it extends, so that results of an earlier class
            are not taken for those of this one.
    """

    arguments: Arguments
    schemas: dict[str, dict[str, Any]] = field(default_factory=dict)
    digest: str = ""


def read_custom_expectations(
    folder: Path | None, known: Mapping[str, Arguments]
) -> tuple[dict[str, CustomExpectation], dict[Path, tuple[int, str]]]:
    """Return the expectations of a folder by name, and for each file that cannot be read the line and the cause.

    A class counts if its name starts with `Expect`, and if it extends one of Great Expectations or of an earlier file.

    Args:
        folder: the folder; it need not exist, nor be known.
        known: the expectations that a class may extend, with their arguments.
    """
    found: dict[str, CustomExpectation] = {}
    files: dict[str, Path] = {}
    errors: dict[Path, tuple[int, str]] = {}
    for path in sorted(folder.glob("*.py") if folder else ()):
        source = path.read_bytes()
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            errors[path] = getattr(error, "lineno", 1) or 1, f"not Python: {error.args[0]}"
            continue
        digest = sha256(source).hexdigest()[:12]
        for node in tree.body:
            if not isinstance(node, ast.ClassDef) or not node.name.startswith("Expect"):
                continue
            name, inherited = expectation_name(node.name), _inherited(node, known, found)
            if name in known:
                errors[path] = node.lineno, f"Great Expectations or Millrace has {name} already"
            elif inherited is not None and name in found:
                errors[path] = node.lineno, f"{files[name].name} has {name} already"
            elif inherited is not None:
                found[name], files[name] = _custom(node, inherited, digest), path
    return found, errors


def expectation_name(class_name: str) -> str:
    """Return the name by which a spec states a class, as Great Expectations makes it.

    >>> expectation_name("ExpectColumnValuesToBeIBANs")
    'expect_column_values_to_be_iba_ns'
    """
    words = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", class_name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def _inherited(
    node: ast.ClassDef, known: Mapping[str, Arguments], found: Mapping[str, CustomExpectation]
) -> CustomExpectation | None:
    """Return what a class inherits; None if it extends no expectation."""
    for base in node.bases:
        class_name = ast.unparse(base).rpartition(".")[2]
        name = expectation_name(class_name)
        if class_name in _BASES:
            return CustomExpectation(_BASES[class_name])
        if name in known:
            return CustomExpectation(known[name])
        if name in found:
            return found[name]
    return None


def _custom(node: ast.ClassDef, inherited: CustomExpectation, digest: str) -> CustomExpectation:
    required, optional = list(inherited.arguments.required), list(inherited.arguments.optional)
    one_of, schemas = list(inherited.arguments.one_of), dict(inherited.schemas)
    for name, annotation, has_default in _fields(node):
        if name in one_of and has_default:
            optional += one_of
            one_of = []
        elif name in required and has_default:
            required.remove(name)
            optional.append(name)
        elif annotation and name not in (*required, *optional, *one_of):
            (optional if has_default else required).append(name)
            schemas[name] = _TYPES.get(annotation.partition("[")[0].lower(), _ANY)
    arguments = Arguments(tuple(required), tuple(optional), tuple(one_of))
    return CustomExpectation(arguments, schemas, digest + inherited.digest)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, bool]]:
    """Yield each public field of a class: its name, its annotation if there is one, and whether it has a default."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            name, annotation = part.target.id, ast.unparse(part.annotation)
            if not name.startswith("_") and name not in _OF_ALL and "ClassVar" not in annotation:
                yield name, annotation, _is_default(part.value)
        elif isinstance(part, ast.Assign):
            for target in part.targets:
                if isinstance(target, ast.Name):
                    yield target.id, "", True


def _is_default(value: ast.expr | None) -> bool:
    """Whether the value of a field is a default: of `Field(...)`, its first argument or `default`."""
    if not isinstance(value, ast.Call) or ast.unparse(value.func).rpartition(".")[2] != "Field":
        return value is not None
    given = [*value.args[:1], *(keyword.value for keyword in value.keywords if "default" in (keyword.arg or ""))]
    return any(ast.unparse(default) != "..." for default in given)
