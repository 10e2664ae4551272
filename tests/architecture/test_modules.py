"""Every module of the house says what it is, and has one job; `make lint` imports it, and runs its examples."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from embedded.clone import CLONE

PACKAGES = {
    "millrace": CLONE / "include" / "millrace",
    "millrace_spark": CLONE / "spark_jobs" / "millrace_spark",
    "lakehouse_airflow": CLONE / "plugins" / "lakehouse_airflow",
    "embedded": CLONE / "embedded",
    "demo": CLONE / "demo",
    "containers": CLONE / "containers",
}
MOST_LINES = 600
MOST_MODULES = 20
FEWEST_LINES = 60
"""Below this length, a module with one importer in its own folder belongs into that importer."""
SMALL_WITH_REASON = {
    "embedded.contents.bill_of_materials": "is a command of its own, which `make bill` runs",
    "millrace.specs.checks.nested_arguments": "holds all that is known of two arguments of Great Expectations",
    "millrace.sql.query.time_windows": "says how Spark computes windows of time, and what follows from it",
    "millrace_spark.layers.gold.float_bounds": "is the arithmetic of inexact sums, which reads best alone",
}
WRONG_NOW_AND_THEN = {
    "splitlines": "cuts at U+0085 and U+2028, too: split at line feeds, or use millrace.control.storage.json_lines",
    **dict.fromkeys(
        ("to_pyarrow_table", "to_pyarrow_dataset"),
        "loses rows under a filter, and leaves threads that may abort a process that ends: ask by "
        "millrace.control.log.table_queries, or read by millrace.reading.datasets",
    ),
}
"""What no production code may call, and why."""


def sources(*packages: str) -> list[Path]:
    found = [path for package in packages or PACKAGES for path in sorted(PACKAGES[package].rglob("*.py"))]
    assert len(found) > 20, "the sources were not found"
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module_of(path: Path) -> str:
    root = next(folder.parent for folder in PACKAGES.values() if path.is_relative_to(folder))
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def test_no_file_is_so_long_that_it_has_two_jobs() -> None:
    lengths = {path.relative_to(CLONE).as_posix(): len(path.read_text().splitlines()) for path in sources()}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def folders() -> dict[str, list[Path]]:
    """Folder -> its modules, of the packages and of the tests."""
    found: dict[str, list[Path]] = {}
    for path in [*sources(), *sorted((CLONE / "tests").rglob("*.py"))]:
        found.setdefault(path.parent.relative_to(CLONE).as_posix(), []).append(path)
    return found


def test_no_folder_has_so_many_modules_that_nobody_can_see_them_at_once() -> None:
    numbers = {folder: len([path for path in paths if path.stem != "__init__"]) for folder, paths in folders().items()}
    assert len(numbers) > 40
    assert {folder: number for folder, number in numbers.items() if number > MOST_MODULES} == {}


def test_no_small_module_has_one_importer_in_its_own_folder() -> None:
    paths = {module_of(path): path for path in sources()}
    importers: dict[str, set[str]] = {}
    for module, path in paths.items():
        for name in imported(ast.walk(tree_of(path))):
            importers.setdefault(name, set()).add(module)
    assert sum(map(len, importers.values())) > 1000
    product = sources("millrace", "millrace_spark", "lakehouse_airflow", "embedded")
    small = {path for path in product if path.stem != "__init__" and path.read_text().count("\n") < FEWEST_LINES}
    found = {
        module: importer
        for module in map(module_of, small)
        for importer in importers.get(module, ())
        # An `__init__` only lists what users import. Who imports late starts sooner without the other.
        if importers[module] == {importer}
        and importer.rpartition(".")[0] == module.rpartition(".")[0]
        and module in imported(tree_of(paths[importer]).body)
    }
    assert found.keys() == SMALL_WITH_REASON.keys(), found


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the modules that these nodes import, and the names that they take from them, as `module.name`."""
    found = set[str]()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def test_each_folder_says_what_lives_there_and_what_does_not() -> None:
    inits = [path for paths in folders().values() for path in paths if path.stem == "__init__"]
    read = ((path.parent.relative_to(CLONE).as_posix(), tree_of(path)) for path in inits)
    said = {folder: str(ast.get_docstring(tree)) for folder, tree in read if not folder.startswith(("demo", "tests"))}
    assert len(said) > 40
    assert [folder for folder, text in said.items() if "\n\n" not in text] == []


def test_nothing_is_called_that_works_nearly_always() -> None:
    found = [
        f"{path.relative_to(CLONE)}:{node.lineno}: {node.attr} {WRONG_NOW_AND_THEN[node.attr]}"
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in WRONG_NOW_AND_THEN
    ]
    assert found == []


def test_everything_public_says_what_it_is() -> None:
    public = {f"{module_of(path)}{name}": text for path in sources() for name, text in public_things(path)}
    assert len(public) > 400
    assert [name for name, text in public.items() if not text] == []


def public_things(path: Path) -> Iterator[tuple[str, str | None]]:
    """(name within the module, docstring) of the module and of every public class, function and method."""
    tree = tree_of(path)
    yield "", ast.get_docstring(tree)
    yield from _public_within(tree, ".")


def _public_within(parent: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str | None]]:
    for node in parent.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", ast.get_docstring(node)
            if isinstance(node, ast.ClassDef):
                yield from _public_within(node, f"{prefix}{node.name}.")
