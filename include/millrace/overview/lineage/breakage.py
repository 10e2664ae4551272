"""What a change of a column breaks: each place where a spec names it, as the checks of `lakehouse check` find it.

The column is renamed in memory, and the specs that may name it are checked. So no second list of the settings that
name columns can be out of date.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from millrace.catalog import Catalog, catalog_of_files
from millrace.overview.described_columns import column_names
from millrace.specs.checks.sql import sql_problems
from millrace.specs.document import list_at, mapping_at
from millrace.specs.files import SpecFile, read_spec_file
from millrace.specs.problem import SpecProblem
from millrace.specs.table_graph import TableGraph
from millrace.sql.query.select_query import query_of

_KINDS = {
    "keys": "key",
    "sequence_by": "merge order",
    "columns": "column",
    "classifications": "classification",
    "measures": "measure",
    "group_by": "group",
    "query": "query",
    "expectations": "rule",
    "sources": "join or filter",
    "refresh_from": "what is computed again",
    "refresh_by": "what is computed again",
    "apply_as_deletes": "deletes",
    "apply_as_truncates": "deletes",
    "except_column_list": "columns left out",
    "zorder_by": "order of files",
    "partitioned_by": "partitions",
    "source": "transform of messages",
    "delta": "table property",
}
"""First word of a key path -> what it means."""


@dataclass(frozen=True)
class BrokenPlace:
    """A place in a spec that names a column.

    Attributes:
        table: the table of the spec.
        problem: what `lakehouse check` says of the place once the column has another name.
    """

    table: str
    problem: SpecProblem

    @property
    def kind(self) -> str:
        """What the column is used for there, such as `key`."""
        word = self.problem.key.partition(".")[0].partition("[")[0]
        if word == "sources" and self.table.startswith("silver."):
            return "column of a source"
        return _KINDS.get(word, word.replace("_", " "))


def broken_places(table: str, column: str, catalog: Catalog) -> list[BrokenPlace]:
    """Return where specs name a column of a table with a sound spec: they are wrong once it is renamed or removed.

    The files of the specs are read again.
    """
    table_of = {problem.file: spec.table for spec in catalog.invalid.values() for problem in spec.problems}
    table_of |= {path: name for name, path in catalog.files.items()}
    related = _related(table, catalog)
    files = [read_spec_file(path) for path, name in table_of.items() if name in related or name in catalog.invalid]
    own, new = catalog.files[table], column
    while new in column_names(catalog.specs[table]):
        new += "_"
    before = {(problem.file, problem.key, problem.message) for problem in _problems(files, own.parents[2])}
    renamed = [_renamed(file, column, new) if file.path == own else file for file in files]
    places: dict[tuple[Path, str], BrokenPlace] = {}
    for problem in _problems(renamed, own.parents[2]):
        is_of_new_name = problem.file == own and problem.key == f"columns.{new}"
        if not is_of_new_name and (problem.file, problem.key, problem.message) not in before:
            places.setdefault((problem.file, problem.key), BrokenPlace(table_of[problem.file], problem))
    order = [table, *catalog.tables, *catalog.invalid]
    return sorted(places.values(), key=lambda place: (order.index(place.table), place.problem.line))


def stopped_tables(wrong: Iterable[str], catalog: Catalog) -> list[str]:
    """Return the tables that no run writes while the specs of some are wrong: these, and all tables that read them."""
    stopped = catalog.graph.downstream(*wrong)
    return [table for table in catalog.tables if table in stopped]


def _problems(files: list[SpecFile], folder: Path) -> list[SpecProblem]:
    catalog = catalog_of_files(files, folder)
    return [*catalog.problems, *sql_problems(catalog)]


def _related(table: str, catalog: Catalog) -> set[str]:
    """Return the table, the tables whose specs name it, and all tables that their checks look at."""
    naming = TableGraph({spec.table: spec.named_tables for spec in catalog.well_formed.values()})
    return set(naming.upstream(table, *naming.readers.get(table, ())))


def _renamed(file: SpecFile, column: str, new: str) -> SpecFile:
    """Return the file with another name for a column, which comes from the same column of the source as before."""
    document = dict(file.document)
    for key in ("columns", "group_by", "measures"):
        part = mapping_at(document, key)
        if column in part:
            value = part[column]
            if str(document.get("table")).startswith("silver.") and not {"from", "expression"} & set(value):
                value = {**value, "from": f"`{column}`"}
            document[key] = {new if name == column else name: value if name == column else part[name] for name in part}
    query = document.get("query")
    if isinstance(query, str) and column in (names := query_of(query).columns):
        columns = ", ".join(f"`{name}` AS `{new}`" if name == column else f"`{name}`" for name in names)
        document["query"] = f"SELECT {columns} FROM (\n{query}\n)"
    if sources := list_at(document, "sources"):
        document["sources"] = [_renamed_in_source(source, column, new) for source in sources]
    return replace(file, document=document)


def _renamed_in_source(source: Any, column: str, new: str) -> Any:
    """Return an entry of `sources` of a silver table, with the other name of a column."""
    columns = mapping_at(source, "columns")
    renamed = {new if name == column else name: sql for name, sql in columns.items()}
    return {**source, "columns": renamed} if column in columns else source
