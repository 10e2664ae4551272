"""Guess the fields of CSV, JSON and Parquet files, which DuckDB reads."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
from duckdb.sqltypes import DuckDBPyType

from include.contracts.spec.nested_type import NestedType, column_type_of
from include.errors import BadInputError
from include.inference.delivered_files import LocalCopy
from include.inference.delivered_rows import FILE, identifier
from include.inference.guess import DIGITS_OF_DOUBLE, Guess, absences, decimal_of, names_in_run, reading
from include.inference.json_lines import may_hide_fields, records_of

_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "UTINYINT": "smallint",
    "USMALLINT": "int",
    "UINTEGER": "bigint",
    "UBIGINT": "decimal(20,0)",
    # DuckDB gives this type to JSON numbers if some are negative; `_wide_numbers` looks whether a bigint holds them.
    "HUGEINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "BLOB": "binary",
    "GEOMETRY": "binary",
}
_NESTED = {"struct": "struct", "list": "array"}
_ISO_ONLY = ", dateformat = '%Y-%m-%d', timestampformat = '%Y-%m-%d %H:%M:%S'"
"""Bronze casts dates and times of ISO 8601 alone; DuckDB would also take 31.12.2025 for a date."""

_MAY_BE_WIDE = ("DOUBLE", "HUGEINT")

_ALL_VALUES = ", sample_size = -1, maximum_depth = 100"
"""The types of JSON follow from all values; what is deeper stays text."""

_AS_SENT = r"{}\s*:\s*(-?[0-9][0-9.eE+-]*)"
_ISO_DAY = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def guess_of_files(reader: duckdb.DuckDBPyConnection, kind: str, delivered: list[LocalCopy], scratch: Path) -> Guess:
    """Guess from CSV, JSON and Parquet files; what cannot be read is left out."""
    if kind == "json":
        return _guess_of_json(reader, delivered, scratch)
    if kind == "parquet":
        return _guess_of(reader, kind, delivered, "", {})
    delimiter, header = _dialect(reader, delivered)
    options = f", sample_size = -1, delim = {_quoted(delimiter)}, header = {header}{_ISO_ONLY}"
    settings = {**({"delimiter": delimiter} if delimiter != "," else {}), **({} if header else {"header": False})}
    return _guess_of(reader, kind, delivered, options, settings)


def _guess_of_json(reader: duckdb.DuckDBPyConnection, delivered: list[LocalCopy], scratch: Path) -> Guess:
    """Guess from JSON files: from copies with nothing but their records if DuckDB does not read each of them as it is.

    Raises:
        BadInputError: no file has a record.
    """
    form = "auto" if any(file.holds_array for file in delivered) else "newline_delimited"
    try:
        guess = _guess_of(reader, "json", delivered, f"{_ALL_VALUES}, format = '{form}'", {})
        if not guess.unread and not guess.settings:  # With several spellings DuckDB has a column for each.
            return guess
    except (duckdb.Error, BadInputError):
        pass  # the reader of the records names what is wrong, by line
    records = records_of(delivered, scratch)
    settings: dict[str, object] = {"field_names": "any_case"} if records.any_case else {}
    options = f"{_ALL_VALUES}, format = 'newline_delimited'"
    guess = _guess_of(reader, "json", records.files, options, settings, records.fields)
    return replace(guess, unread=(*records.unread, *guess.unread))


def _guess_of(
    reader: duckdb.DuckDBPyConnection,
    kind: str,
    delivered: list[LocalCopy],
    options: str,
    settings: dict[str, object],
    field_of: Mapping[str, str] | None = None,
) -> Guess:
    """Guess from files; each is read alone first, and one that cannot be read is left out.

    Args:
        reader: DuckDB.
        kind: their format.
        delivered: the files.
        options: the further arguments of DuckDB's function.
        settings: the settings of the source.
        field_of: column of JSON files -> the field; None if they have the same names.

    Raises:
        BadInputError: none can be read; the error names the first.
    """
    alone, fields, unread, files = list[dict[str, str]](), dict[str, str](), list[str](), list[LocalCopy]()
    differ = has_both = False
    for each in delivered:
        try:
            with reading(each, kind):
                detected = _detect(reader, kind, [each], options)
                if kind != "csv":  # Some defects show only when all values are read, as they are to detect CSV's types.
                    reader.execute(f"SELECT max(hash(COLUMNS(*))) FROM {_relation(kind, [each], options)}").fetchall()
                if kind == "json":
                    names = _json_fields(tuple(detected), field_of)
                else:
                    names = names_in_run(each, kind, settings)
                    # DuckDB names the columns of a file without a header.
                    names = names if len(names) == len(detected) else tuple(detected)
        except BadInputError as error:
            unread.append(str(error))
            continue
        files.append(each)
        # DuckDB takes columns of different files for the same, whatever the case of their names.
        named = {column.lower(): name for column, name in zip(detected, names, strict=True)}
        fields = named | fields
        differ |= any(fields[column] != name for column, name in named.items())
        has_both |= len({name.lower() for name in names}) < len(names)
        alone.append({fields[column.lower()]: str(kind_of) for column, kind_of in detected.items()})
    if not files:
        raise BadInputError(unread[0])
    if differ and not has_both:  # In any case, a file with both spellings is broken.
        settings = {**settings, "field_names": "any_case"}
    detected, absent = _detect(reader, kind, files, options), Counter[str]() if kind == "json" else absences(alone)
    if kind == "csv" and (texts := _other_times(reader, files, options, detected)):
        stated = ", ".join(f"{_quoted(column)}: 'VARCHAR'" for column in texts)
        options += f", types = {{{stated}}}"
        detected = _detect(reader, kind, files, options)
    found = {column: spark_type(kind_of) for column, kind_of in detected.items()}
    found |= _wide_decimals(files) if kind == "parquet" else _wide_numbers(reader, kind, files, options, detected)
    types = {fields.get(column.lower(), column): kind_of for column, kind_of in found.items()}
    columns = {fields.get(column.lower(), column): column for column in detected}
    relation = _relation(kind, files, f"{options}, filename = '{FILE}'")
    return Guess(types, settings, absent, relation, columns, tuple(unread))


def _json_fields(detected: tuple[str, ...], field_of: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the fields of the columns of a JSON file.

    Raises:
        ValueError: DuckDB may have found columns that are no fields.
    """
    if field_of is None and may_hide_fields(detected):
        raise ValueError("some of its columns may be no fields")
    return detected if field_of is None else tuple(field_of.get(column, "") for column in detected)


def _dialect(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> tuple[str, bool]:
    """Return the delimiter of CSV files, and whether they have a header, by the newest that can be read.

    Raises:
        BadInputError: none can be read; the error names the newest.
    """
    query, problems = "SELECT Delimiter, HasHeader FROM sniff_csv(?)", list[BadInputError]()
    for file in reversed(files):
        try:
            with reading(file, "csv"):
                # All rows are fetched: an open result would make the next error end the transaction of every file.
                ((delimiter, header),) = reader.execute(query, [str(file.path)]).fetchall()
                return str(delimiter), bool(header)
        except BadInputError as error:
            problems.append(error)
    raise problems[0]


def _detect(
    reader: duckdb.DuckDBPyConnection, kind: str, files: list[LocalCopy], options: str
) -> dict[str, DuckDBPyType]:
    """Return the columns that DuckDB detects: column -> type."""
    found = reader.sql(f"SELECT * FROM {_relation(kind, files, options)}")
    return dict(zip(found.columns, found.types, strict=True))


def _other_times(
    reader: duckdb.DuckDBPyConnection, files: list[LocalCopy], options: str, detected: Mapping[str, DuckDBPyType]
) -> list[str]:
    """Return the columns of CSV files with times that only DuckDB takes for such, for example 2025/12/31."""
    times = [column for column, kind_of in detected.items() if str(kind_of).startswith("TIMESTAMP")]
    if not times:
        return []
    measures = ", ".join(f"bool_and(regexp_matches({identifier(column)}, '{_ISO_DAY}'))" for column in times)
    relation = _relation("csv", files, f"{options}, all_varchar = true")
    found = reader.execute(f"SELECT {measures} FROM {relation}").fetchone() or ()
    return [column for column, is_iso in zip(times, found, strict=True) if not is_iso]


def _wide_numbers(
    reader: duckdb.DuckDBPyConnection,
    kind: str,
    files: list[LocalCopy],
    options: str,
    detected: Mapping[str, DuckDBPyType],
) -> dict[str, str]:
    """Return the columns with numbers that neither a bigint nor a double holds exactly, each with a type that does.

    DuckDB's type for such numbers of CSV and JSON files is a double, or HUGEINT, also where a bigint would do.
    """
    wide = [column for column, kind_of in detected.items() if str(kind_of) in _MAY_BE_WIDE]
    if not wide:
        return {}
    as_text = ", ".join(f"{_quoted(column)}: 'VARCHAR'" for column in wide)
    texts = ", all_varchar = true" if kind == "csv" else f", columns = {{{as_text}}}"
    facts = _number_facts(reader, wide, _relation(kind, files, options + texts))
    if kind == "json" and (long := [column for column in wide if (facts[column][-1] or 0) > DIGITS_OF_DOUBLE]):
        facts |= _number_facts(reader, long, _numbers_as_sent(files, long))
    types = dict[str, str]()
    for column, (are_whole, are_wide, digits, scale, has_exponent, are_inexact, _) in facts.items():
        if are_whole and are_wide:
            types[column] = decimal_of(digits, 0)
        elif are_inexact and not are_whole:
            types[column] = "string" if has_exponent else decimal_of(digits, scale)
    return types


def _number_facts(reader: duckdb.DuckDBPyConnection, columns: list[str], relation: str) -> dict[str, tuple[Any, ...]]:
    """Return column -> what its texts of numbers show."""
    measures = ", ".join(
        f"bool_and(regexp_full_match({name}, '[+-]?[0-9]+')), "
        f"bool_or({name} IS NOT NULL AND TRY_CAST({name} AS BIGINT) IS NULL), "
        f"max(length(ltrim(split_part({name}, '.', 1), '+-0'))), "
        f"max(length(split_part({name}, '.', 2))), "
        f"bool_or(contains(lower({name}), 'e')), "
        # A double that DuckDB writes has the digits that were sent, or others: then they were too many.
        f"bool_or(length({_digits(name)}) > {DIGITS_OF_DOUBLE} AND {_digits(name)} <> "
        f"{_digits(f'CAST(TRY_CAST({name} AS DOUBLE) AS VARCHAR)')}), "
        f"max(length({_digits(name)}))"
        for name in map(identifier, columns)
    )
    found = iter(reader.execute(f"SELECT {measures} FROM {relation}").fetchone() or ())
    return dict(zip(columns, zip(*[found] * 7, strict=True), strict=True))


def _numbers_as_sent(files: list[LocalCopy], columns: list[str]) -> str:
    """Return a relation with the numbers of JSON files as they are written: DuckDB reads those with a point as doubles.

    A field of the same name within another one may stand for it, which has about as many digits.
    """
    paths = ", ".join(_quoted(str(file.path)) for file in files)
    names = {column: re.escape(json.dumps(column, ensure_ascii=False)) for column in columns}
    texts = ", ".join(
        f"nullif(regexp_extract(json::VARCHAR, {_quoted(_AS_SENT.format(name))}, 1), '') AS {identifier(column)}"
        for column, name in names.items()
    )
    return f"(SELECT {texts} FROM read_json_objects([{paths}], format = 'auto'))"


def _digits(number: str) -> str:
    """Return the SQL of the digits of a number, without zeros at either end."""
    return f"trim(replace(split_part(lower({number}), 'e', 1), '.', ''), '+-0')"


def _wide_decimals(files: list[LocalCopy]) -> dict[str, str]:
    """Return the columns of Parquet files with decimals that no column has, which DuckDB takes for doubles: as text."""
    schemas = (pq.read_schema(file.path) for file in files)
    return {field.name: "string" for schema in schemas for field in schema if "decimal256" in str(field.type)}


def _relation(kind: str, files: list[LocalCopy], options: str) -> str:
    paths = ", ".join(_quoted(str(file.path)) for file in files)
    return f"read_{kind}([{paths}], union_by_name = true, hive_partitioning = false{options})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def spark_type(kind: DuckDBPyType) -> str:
    """Return the column type for a type of DuckDB; text if bronze has no better type.

    >>> kinds = ("BIGINT", "TIMESTAMP WITH TIME ZONE", "DECIMAL(9,2)", "STRUCT(x BIGINT)[]", 'STRUCT("x y" BIGINT)')
    >>> [spark_type(duckdb.sqltype(kind)) for kind in kinds]
    ['bigint', 'timestamp', 'decimal(9,2)', 'array<struct<x:bigint>>', 'string']
    """
    if kind.id in _NESTED:
        parts = {name: spark_type(part) for name, part in kind.children if isinstance(part, DuckDBPyType)}
        return column_type_of(NestedType(_NESTED[kind.id], parts))
    text = str(kind)
    if decimal := _DECIMAL.fullmatch(text):
        return f"decimal({decimal[1]},{decimal[2]})"
    return "timestamp" if text.startswith("TIMESTAMP") else _TYPES.get(text.partition("(")[0], "string")
