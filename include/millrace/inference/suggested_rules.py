"""Suggest rules for a table: what is true of its certified version, and of certified versions before it.

DuckDB reads the version with bounded memory. Every suggested rule passes on that version.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from statistics import median
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from millrace.contracts.counted import counted

_LEAST_ROWS = 20
"""The fewest rows that say something about uniqueness, lengths or lists of values."""

_MOST_VALUES = 12
"""A text with at most so many different values is taken for one of a list."""

_MOST_CHARACTERS = 60
_OF_LAST = 7
"""The number of versions with which the rule on the number of rows compares."""


@dataclass(frozen=True)
class Suggestion:
    """A rule that passes on the version.

    Attributes:
        name: the expectation.
        arguments: its arguments.
        evidence: why it is suggested: numbers of rows and versions.
    """

    name: str
    arguments: dict[str, Any]
    evidence: str


@dataclass(frozen=True)
class Past:
    """What is known of the certified versions up to the profiled one, without reading their rows.

    Attributes:
        facts: the recorded numbers of rows of each version, the newest first; the first is the profiled version.
        nulls: for each earlier version, column -> number of NULLs, for the columns with statistics.
    """

    facts: Sequence[Mapping[str, int]] = ()
    nulls: Sequence[Mapping[str, int]] = ()


@dataclass(frozen=True)
class _Column:
    name: str
    kind: pa.DataType
    values: int
    distinct: int
    least: Any
    greatest: Any
    shortest: int | None
    longest: int | None


def suggest_rules(
    connection: DuckDBPyConnection, relation: str, columns: Mapping[str, pa.DataType], past: Past
) -> list[Suggestion]:
    """Return the suggested rules, those of the table first, then those of each column.

    Args:
        connection: the DuckDB that reads the version.
        relation: the rows of the version, as DuckDB's SQL.
        columns: column -> type, for the columns to look at.
        past: what is known of earlier versions.
    """
    rows, profiles = _profile(connection, relation, columns)
    if not rows:
        return []
    found = list(_of_row_count(rows, past))
    for column in profiles:
        found += _of_column(connection, relation, column, rows, past)
    return found


def _profile(
    connection: DuckDBPyConnection, relation: str, columns: Mapping[str, pa.DataType]
) -> tuple[int, list[_Column]]:
    """Return the number of rows and the facts of each column, all of one scan."""
    measures = ["count(*)"]
    for column, kind in columns.items():
        name = _identifier(column)
        bounds = f"min({name}), max({name})" if _is_number(kind) else "NULL, NULL"
        lengths = f"min(length({name})), max(length({name}))" if _is_text(kind) else "NULL, NULL"
        measures.append(f"count({name}), approx_count_distinct({name}), {bounds}, {lengths}")
    found = connection.execute(f"SELECT {', '.join(measures)} FROM {relation}").fetchone() or (0,)
    parts = [found[1 + 6 * number : 7 + 6 * number] for number in range(len(columns))]
    return int(found[0]), [_Column(*column, *part) for column, part in zip(columns.items(), parts, strict=True)]


def _of_row_count(rows: int, past: Past) -> Iterator[Suggestion]:
    name = next((fact for fact in ("applied", "in_table") if past.facts and fact in past.facts[0]), "")
    of_rows = [facts[name] for facts in past.facts if name in facts]
    windows = [of_rows[at + 1 : at + 1 + _OF_LAST] for at in range(len(of_rows) - _OF_LAST)]
    medians = [median(window) for window in windows]
    if not medians or not all(medians):
        evidence = f"the version has {counted(rows, 'row')}"
        yield Suggestion("expect_table_row_count_to_be_between", {"min_value": 1}, evidence)
        return
    percents = [100 * now / usual for now, usual in zip(of_rows, medians, strict=False)]
    low, high = min(50, math.floor(min(percents) * 0.8)), max(200, math.ceil(max(percents) * 1.25))
    arguments = {"rows": name, "of_last": _OF_LAST, "min_percent": low, "max_percent": high}
    evidence = (
        f"{min(percents):.0f} to {max(percents):.0f} percent of the median of the {_OF_LAST} versions before, "
        f"in {counted(len(percents), 'certified version')}"
    )
    yield Suggestion("expect_table_row_count_to_be_near_median", arguments, evidence)


def _of_column(
    connection: DuckDBPyConnection, relation: str, column: _Column, rows: int, past: Past
) -> Iterator[Suggestion]:
    name = column.name
    earlier = [nulls[name] for nulls in past.nulls if name in nulls]
    if column.values == rows and not any(earlier):
        versions = f", nor in {counted(len(earlier), 'earlier certified version')}" if earlier else ""
        evidence = f"never null in {counted(rows, 'row')}{versions}"
        yield Suggestion("expect_column_values_to_not_be_null", {"column": name}, evidence)
    if column.values >= _LEAST_ROWS and _is_unique(connection, relation, column):
        evidence = f"{counted(column.values, 'different value')} in {counted(rows, 'row')}"
        yield Suggestion("expect_column_values_to_be_unique", {"column": name}, evidence)
    elif _is_number(column.kind) and column.values:
        yield from _between(column, rows)
    elif values := _listed(connection, relation, column):
        evidence = f"{counted(len(values), 'value')} in {counted(column.values, 'row')}"
        yield Suggestion("expect_column_values_to_be_in_set", {"column": name, "value_set": values}, evidence)
        return
    if column.values >= _LEAST_ROWS and column.shortest and column.shortest == column.longest:
        arguments: dict[str, Any] = {"column": name, "min_value": column.shortest, "max_value": column.longest}
        evidence = f"each of {counted(column.values, 'value')} has {counted(column.shortest, 'character')}"
        yield Suggestion("expect_column_value_lengths_to_be_between", arguments, evidence)


def _is_unique(connection: DuckDBPyConnection, relation: str, column: _Column) -> bool:
    """Whether no two rows have the same value; only counted exactly if the estimate does not exclude it."""
    if pa.types.is_floating(column.kind) or column.distinct < 0.8 * column.values:
        return False
    found = connection.execute(f"SELECT count(DISTINCT {_identifier(column.name)}) FROM {relation}").fetchone()
    return found is not None and found[0] == column.values


def _between(column: _Column, rows: int) -> Iterator[Suggestion]:
    """Suggest bounds with two digits, beyond the observed values; 0 if no value is negative, or none is positive."""
    least, greatest = column.least, column.greatest
    if not (math.isfinite(least) and math.isfinite(greatest)):
        return
    low, high = -_rounded_up(max(-least, 0)), _rounded_up(max(greatest, 0))
    arguments = {"column": column.name, "min_value": low, "max_value": high}
    evidence = f"from {least:,} to {greatest:,} in {counted(rows, 'row')}"
    yield Suggestion("expect_column_values_to_be_between", arguments, evidence)


def _rounded_up(value: Any) -> int | float:
    """Return a number of at least `value`, which is not negative, with two digits other than zeros.

    >>> _rounded_up(1440), _rounded_up(0.123), _rounded_up(7), _rounded_up(0)
    (1500, 0.13, 7, 0)
    """
    exact = Decimal(str(value))
    if not exact:
        return 0
    rounded = exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), rounding=ROUND_CEILING)
    return int(rounded) if rounded == rounded.to_integral_value() else float(rounded)


def _listed(connection: DuckDBPyConnection, relation: str, column: _Column) -> list[str]:
    """Return the values of a text with few values, each in ten rows on average; else none."""
    is_short = column.longest is not None and column.longest <= _MOST_CHARACTERS
    if not _is_text(column.kind) or not is_short or column.distinct > 2 * _MOST_VALUES:
        return []
    name = _identifier(column.name)
    sql = f"SELECT DISTINCT {name} FROM {relation} WHERE {name} IS NOT NULL LIMIT {_MOST_VALUES + 1}"
    values = sorted(value for (value,) in connection.execute(sql).fetchall())
    return values if 10 * len(values) <= column.values and len(values) <= _MOST_VALUES else []


def _is_text(kind: pa.DataType) -> bool:
    return any(is_type(kind) for is_type in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    return any(is_type(kind) for is_type in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal))


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
