"""The rows of delivered files: what is null, what is unique, which values there are. DuckDB counts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import duckdb

from millrace.contracts.spec.column_types import FLOATING, NUMBERS, base_of, types_of
from millrace.inference.delivered_files import LocalCopy

FILE = "_delivered_in_file"
"""The column of a relation with the file of each row."""


@dataclass(frozen=True)
class ColumnFacts:
    """What the delivered rows say about one column.

    Attributes:
        type: its type in the spec.
        is_text: whether the files have text in it, and not, for example, a date.
        nulls: the number of rows without a value.
        distinct: the number of different values.
        per_file: the same, counted in each file and added up.
        least: the least number in it as text, other than NaN; None if it has no number.
        greatest: the greatest number in it.
    """

    type: str
    is_text: bool
    nulls: int
    distinct: int
    per_file: int
    least: str | None
    greatest: str | None


@dataclass(frozen=True)
class DeliveredRows:
    """The rows of the files from which a spec is guessed.

    Attributes:
        reader: the DuckDB that reads them.
        relation: the rows, as DuckDB's SQL, with the column `FILE`.
        types: column -> type in the spec, for the columns that a table can have.
    """

    reader: duckdb.DuckDBPyConnection
    relation: str
    types: Mapping[str, str]

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._row("count(*)")[0])

    def columns(self) -> dict[str, ColumnFacts]:
        """Return the facts of each column; all rows are read once."""
        values = iter(self._row(", ".join(_measures(name, kind) for name, kind in self.types.items())))
        return {name: ColumnFacts(kind, *islice(values, 6)) for name, kind in self.types.items()}

    def distinct(self, *columns: str) -> int:
        """Return the number of different values of several columns together."""
        return int(self._row(f"count(DISTINCT ({', '.join(map(identifier, columns))}))")[0])

    def values(self, column: str) -> list[tuple[str, int]]:
        """Return each value of a column with the number of its rows, the most frequent first."""
        name = identifier(column)
        sql = f"SELECT {name}, count(*) FROM {self.relation} WHERE {name} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1"
        return [(str(value), int(number)) for value, number in self.reader.execute(sql).fetchall()]

    def _row(self, measures: str) -> tuple[Any, ...]:
        return self.reader.execute(f"SELECT {measures} FROM {self.relation}").fetchone() or ()


def _measures(column: str, kind: str) -> str:
    """Return the SQL of the measures of `ColumnFacts`, in their order."""
    name, is_number, is_text = identifier(column), base_of(kind) in NUMBERS, kind == "string"
    number = f"TRY_CAST({name} AS {kind})"
    if kind in types_of(FLOATING):
        number = f"CASE WHEN NOT isnan({number}) THEN {number} END"
    bounds = f"min({number})::VARCHAR, max({number})::VARCHAR" if is_number else "NULL, NULL"
    return (
        f"{is_text} AND bool_and(typeof({name}) = 'VARCHAR'), count(*) - count({name}), count(DISTINCT {name}), "
        f"count(DISTINCT CASE WHEN {name} IS NOT NULL THEN ({FILE}, {name}) END), {bounds}"
    )


def identifier(name: str) -> str:
    """Return the name of a column, which may contain any character, as DuckDB's SQL."""
    return '"' + name.replace('"', '""') + '"'


def relation_of(kind: str, files: list[LocalCopy], options: str) -> str:
    """Return the rows of files of a format as DuckDB's SQL; `options` are further arguments of its function."""
    paths = ", ".join(quoted(str(file.path)) for file in files)
    return f"read_{kind}([{paths}], union_by_name = true, hive_partitioning = false{options})"


def quoted(text: str) -> str:
    """Return a text as DuckDB's SQL."""
    return "'" + text.replace("'", "''") + "'"
