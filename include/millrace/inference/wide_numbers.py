"""Numbers of CSV and JSON files that neither a bigint nor a double holds exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from millrace.inference.delivered_files import LocalCopy
from millrace.inference.delivered_rows import identifier, quoted, relation_of
from millrace.inference.guess import DIGITS_OF_DOUBLE, decimal_of

_MAY_BE_WIDE = ("DOUBLE", "HUGEINT")
_AS_SENT = r"{}\s*:\s*(-?[0-9][0-9.eE+-]*)"


def wide_numbers(
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
    as_text = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in wide)
    texts = ", all_varchar = true" if kind == "csv" else f", columns = {{{as_text}}}"
    facts = _number_facts(reader, wide, relation_of(kind, files, options + texts))
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
        # A double that DuckDB writes has the digits that were sent, or others: they were too many, or it is too large.
        f"bool_or(regexp_matches({name}, '[0-9]') AND {_digits(name)} IS DISTINCT FROM "
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
    paths = ", ".join(quoted(str(file.path)) for file in files)
    names = {column: re.escape(json.dumps(column, ensure_ascii=False)) for column in columns}
    texts = ", ".join(
        f"nullif(regexp_extract(json::VARCHAR, {quoted(_AS_SENT.format(name))}, 1), '') AS {identifier(column)}"
        for column, name in names.items()
    )
    return f"(SELECT {texts} FROM read_json_objects([{paths}], format = 'auto'))"


def _digits(number: str) -> str:
    """Return the SQL of the digits of a number, without zeros and blanks at either end."""
    return f"trim(replace(split_part(lower({number}), 'e', 1), '.', ''), ' \t+-0')"
