"""Random filters on a column, each in the language of every reader, and what makes their values."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

from tests.support.given import arrow_type

_OPERATORS = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
"""Comparison in SQL -> the method of an expression of Arrow and Polars."""
_READ = {
    "boolean": lambda text: text == "true",
    "float": float,
    "double": float,
    "decimal": Decimal,
    "date": date.fromisoformat,
    "timestamp": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "string": str,
    "binary": bytes.fromhex,
}
"""Type -> what reads a value from its text; whole numbers are not among them."""


@dataclass(frozen=True)
class Predicate:
    """A filter on a column, or on a field of a struct: `word` with values, and perhaps the opposite of it all.

    Attributes:
        column: the column, or `column.field`.
        kind: its type in Spark SQL.
        word: a comparison, `between`, `in` or `is null`.
        values: texts of values of the type.
        is_negated: whether it is within NOT.
    """

    column: str
    kind: str
    word: str
    values: tuple[str, ...] = ()
    is_negated: bool = False

    @property
    def spark(self) -> str:
        """The filter in Spark's SQL."""
        return self._sql("`", lambda text: f"X'{text}'" if self.kind == "binary" else f"CAST('{text}' AS {self.kind})")

    @property
    def duckdb(self) -> str:
        """The filter in DuckDB's SQL."""
        of_kind = {"binary": "from_hex('{}')", "timestamp": "CAST('{}+00:00' AS timestamptz)"}
        return self._sql('"', of_kind.get(self.kind, f"CAST('{{}}' AS {self.kind})").format)

    @property
    def datafusion(self) -> str:
        """The filter in the SQL of DataFusion, which is that of delta-rs."""
        in_utc = """arrow_cast('{}', 'Timestamp(Microsecond, Some("UTC"))')"""
        of_kind = {"binary": "X'{}'", "timestamp": in_utc, "string": "'{}'"}
        return self._sql('"', of_kind.get(self.kind, f"CAST('{{}}' AS {self.kind})").format)

    @property
    def clickhouse(self) -> str:
        """The filter in the SQL of ClickHouse, which is that of chdb."""
        names = {"boolean": "Bool", "tinyint": "Int8", "smallint": "Int16", "int": "Int32", "bigint": "Int64"}
        of_kind = {"float": "Float32", "double": "Float64", "date": "Date32", "string": "String", **names}
        whole = {"binary": "unhex('{}')", "timestamp": "toDateTime64('{}', 6, 'UTC')"}
        cast = f"CAST('{{}}' AS {of_kind.get(self.kind, self.kind.title())})"
        return self._sql('"', whole.get(self.kind, cast).format)

    def _sql(self, quote: str, literal: Callable[[str], str]) -> str:
        column = ".".join(f"{quote}{name}{quote}" for name in self.column.split("."))
        literals = [literal(value) for value in self.values]
        match self.word:
            case "is null":
                text = f"{column} IS NULL"
            case "in":
                text = f"{column} IN ({', '.join(literals)})"
            case "between":
                text = f"{column} BETWEEN {literals[0]} AND {literals[1]}"
            case _:
                text = f"{column} {self.word} {literals[0]}"
        return f"NOT ({text})" if self.is_negated else text

    def arrow(self) -> ds.Expression:
        """The filter for Arrow's datasets."""
        values = [pa.scalar(read_value(value, self.kind), arrow_type(self.kind)) for value in self.values]
        return self.expression(ds.field(*self.column.split(".")), values)

    def polars(self) -> pl.Expr:
        """The filter for a frame of Polars."""
        name, *fields = self.column.split(".")
        column = pl.col(name).struct.field(fields[0]) if fields else pl.col(name)
        values = [read_value(value, self.kind) for value in self.values]
        if self.word == "in":
            found = column.is_in(pl.Series(pa.array(values, arrow_type(self.kind))))
            return ~found if self.is_negated else found
        return self.expression(column, [pl.lit(value) for value in values])

    def expression(self, column: Any, values: Sequence[Any]) -> Any:
        """The filter in the operators of Python, on a column and values of some library."""
        match self.word:
            case "is null":
                expression = column.is_null()
            case "in":
                expression = reduce(or_, [column == value for value in values])
            case "between":
                expression = (column >= values[0]) & (column <= values[1])
            case _:
                expression = getattr(column, _OPERATORS[self.word])(values[0])
        return ~expression if self.is_negated else expression


def random_predicates(seed: str, column: str, kind: str, values: Sequence[str], count: int) -> list[Predicate]:
    """Return filters on a column that has such values."""
    chosen = random.Random(f"{seed} {column}")
    words = [*_OPERATORS, "between", "in", "in", "is null"]
    found = []
    for _ in range(count):
        word = chosen.choice(words)
        needed = {"between": 2, "in": 2, "is null": 0}.get(word, 1)
        found.append(Predicate(column, kind, word, tuple(chosen.choices(values, k=needed)), chosen.random() < 0.4))
    return found


def read_value(text: str, kind: str) -> Any:
    """Return a value from its text."""
    return _READ.get(kind.partition("(")[0], int)(text)
