"""Guess the fields of delivered files: DuckDB reads CSV, JSON and Parquet, and Avro has schemas.

Numbers of CSV and JSON files that neither a bigint nor a double holds exactly get a type that does.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import MAX_PREC, Context, Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb.sqltypes import DuckDBPyType

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.column_types import TYPES
from millrace.contracts.spec.nested_type import NestedType, column_type_of
from millrace.control.landing.formats.avro_files import open_avro
from millrace.control.landing.formats.avro_schema import column_type
from millrace.control.landing.formats.parquet_files import parquet_file
from millrace.errors import BadInputError, first_line
from millrace.inference.delivered_files import LocalCopy
from millrace.inference.delivered_rows import FILE, identifier, quoted, relation_of
from millrace.inference.guess import DIGITS_OF_DOUBLE, Guess, absences, decimal_of, mixed_fields, names_in_run, reading
from millrace.inference.json_lines import may_be_deep, may_hide_fields, records_of

_TYPES = {of_duckdb: name for name, kind in TYPES.items() for of_duckdb in kind.duckdb} | {"UBIGINT": "decimal(20,0)"}
_NESTED = {"struct": "struct", "list": "array"}
_ISO_ONLY = ", dateformat = '%Y-%m-%d', timestampformat = '%Y-%m-%d %H:%M:%S'"
"""Bronze casts dates and times of ISO 8601 alone; DuckDB would also take 31.12.2025 for a date."""

_ONE_HEADER = ", skip = 0, ignore_errors = true"
"""The first line is the header, as in a run; else a line with too many values makes DuckDB take it for the header."""

_ALL_VALUES = ", sample_size = -1, maximum_depth = 100"
"""The types of JSON follow from all values; what is deeper stays text."""

_SPLIT = ("FLOAT", "DOUBLE")
"""The stored types of which DuckDB reads the encoding BYTE_STREAM_SPLIT."""

_ISO_TIME = r"^\s*[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[^A-Za-z]*(T[^A-Za-z]*)?(Z|UT|UTC|GMT)?[0-9:+-]*\s*$"
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def guess_of_files(reader: duckdb.DuckDBPyConnection, kind: str, delivered: list[LocalCopy], scratch: Path) -> Guess:
    """Guess from files of a format; what cannot be read is left out."""
    if kind == "avro":
        return _guess_of_avro(reader, delivered)
    if kind == "json":
        return _guess_of_json(reader, delivered, scratch)
    if kind == "parquet":
        return _guess_of(reader, kind, [_readable_copy(file, scratch) for file in delivered], "", {})
    settings = _dialect(reader, delivered)
    names = {"delimiter": "delim"}
    stated = "".join(f", {names.get(name, name)} = {quoted(str(value))}" for name, value in settings.items())
    defaults = {name: LandingSource.model_fields[name].default for name in settings}
    different = {name: value for name, value in settings.items() if value != defaults[name]}
    return _guess_of(reader, kind, delivered, f", sample_size = -1{stated}{_ISO_ONLY}{_ONE_HEADER}", different)


def _malformed_lines(reader: duckdb.DuckDBPyConnection, file: LocalCopy, options: str) -> list[str]:
    """Return the lines of a CSV file with too few or too many values, which runs keep as malformed records.

    Raises:
        ValueError: a line is no text in UTF-8; no run reads such a file.
    """
    relation = f"read_csv({quoted(str(file.path))}{options}, store_rejects = true)"
    reader.execute(f"SELECT count(COLUMNS(*)) FROM {relation}").fetchall()
    query = "SELECT DISTINCT line, error_type, error_message FROM reject_errors ORDER BY line"
    found = reader.execute(query).fetchall()
    reader.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
    for line, kind, message in found:
        if kind == "INVALID ENCODING":
            raise ValueError(f"line {line}: {first_line(message)}")
    return [f"{file.name}: line {line}: {first_line(message)}" for line, _, message in found]


def _guess_of_json(reader: duckdb.DuckDBPyConnection, delivered: list[LocalCopy], scratch: Path) -> Guess:
    """Guess from JSON files: from copies with nothing but their records if DuckDB does not read each of them as it is.

    Raises:
        BadInputError: no file has a record.
    """
    form = "auto" if any(file.holds_array for file in delivered) else "newline_delimited"
    try:
        if not any(map(may_be_deep, delivered)):
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
                malformed = _malformed_lines(reader, each, options) if kind == "csv" else []
                detected = _detect(reader, relation_of(kind, [each], options))
                if kind != "csv":  # Some defects show only when all values are read, as they are to detect CSV's types.
                    reader.execute(f"SELECT max(hash(COLUMNS(*))) FROM {relation_of(kind, [each], options)}").fetchall()
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
        unread += malformed
        # DuckDB takes columns of different files for the same, whatever the case of their names.
        named = {column.lower(): name for column, name in zip(detected, names, strict=True)}
        fields = named | fields
        differ |= any(fields[column] != name for column, name in named.items())
        has_both |= len({name.lower() for name in names}) < len(names)
        alone.append({fields[column.lower()]: spark_type(kind_of) for column, kind_of in detected.items()})
    if not files:
        raise BadInputError(unread[0])
    if differ and not has_both:  # In any case, a file with both spellings is broken.
        settings = {**settings, "field_names": "any_case"}
    absent = Counter[str]() if kind == "json" else absences(alone)
    relation, texts = relation_of(kind, files, f"{options}, filename = '{FILE}'"), set[str]()
    if kind == "parquet":
        relation, texts, more_unread = _parquet_rows(files, alone)
        unread += more_unread
    detected = _detect(reader, relation)
    if kind == "csv" and (times := _other_times(reader, files, options, detected)):
        stated = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in times)
        options += f", types = {{{stated}}}"
        relation = relation_of(kind, files, f"{options}, filename = '{FILE}'")
        detected = _detect(reader, relation)
    found = {column: spark_type(kind_of) for column, kind_of in detected.items()}
    if kind != "parquet":
        found |= wide_numbers(reader, kind, files, options, detected)
    types = {fields.get(column.lower(), column): kind_of for column, kind_of in found.items()}
    columns = {fields.get(column.lower(), column): column for column in detected}
    types |= dict.fromkeys(texts & types.keys(), "string")
    remarks = {name: text for name, text in mixed_fields(alone).items() if types.get(name) == "string"}
    return Guess(types, settings, absent, relation, columns, tuple(unread), remarks)


def _readable_copy(file: LocalCopy, scratch: Path) -> LocalCopy:
    """Return a Parquet file, or a copy of it if DuckDB does not read how its numbers are stored, which runs do."""
    try:
        with file.path.open("rb") as stored:
            content = parquet_file(stored).file
            groups = map(content.metadata.row_group, range(content.metadata.num_row_groups))
            chunks = (group.column(number) for group in groups for number in range(group.num_columns))
            if not any(
                "BYTE_STREAM_SPLIT" in chunk.encodings and chunk.physical_type not in _SPLIT for chunk in chunks
            ):
                return file
            copy = scratch / f"{uuid4().hex}.parquet"
            with pq.ParquetWriter(copy, content.schema_arrow) as writer:
                for batch in content.iter_batches():
                    writer.write_batch(batch)
    except (ValueError, OSError, pa.ArrowException):
        return file  # DuckDB names what is wrong
    return replace(file, path=copy)


def _parquet_rows(files: list[LocalCopy], alone: list[dict[str, str]]) -> tuple[str, set[str], list[str]]:
    """Return (the rows of Parquet files as DuckDB's SQL, the fields that only text holds, what cannot be read).

    DuckDB takes columns of nulls for numbers, those that nothing reads for bytes, and decimals that no column has for
    doubles.

    Args:
        files: the files.
        alone: the columns of each; those of nulls and those that nothing reads are removed.
    """
    texts, unread = set[str](), list[str]()
    replaced, without = list[dict[str, str]](), list[Mapping[str, str]]()
    for file, columns in zip(files, alone, strict=True):
        with file.path.open("rb") as stored:
            content = parquet_file(stored)
        schema = content.file.schema_arrow
        texts |= {field.name for field in schema if "decimal256" in str(field.type)}
        unread += (f"{file.name}: its column {name} cannot be read ({why})" for name, why in content.unread.items())
        replaced.append({field.name: "NULL" for field in schema if pa.types.is_null(field.type)})
        for name in (*replaced[-1], *content.unread):
            columns.pop(name, None)
        without.append(content.unread)
    mixed, selects = mixed_fields(alone).keys(), list[str]()
    for file, columns, others, unreadable in zip(files, alone, replaced, without, strict=True):
        others |= {name: f"CAST({identifier(name)} AS VARCHAR)" for name in mixed & columns.keys()}
        instead = ", ".join(f"{value} AS {identifier(name)}" for name, value in others.items())
        excluded = ", ".join(map(identifier, unreadable))
        every = f"* {excluded and f'EXCLUDE ({excluded})'} {instead and f'REPLACE ({instead})'}"
        rows = relation_of("parquet", [file], f", filename = '{FILE}'")
        selects.append(f"SELECT {every} FROM {rows}")
    return f"({' UNION ALL BY NAME '.join(selects)})", texts | mixed, unread


def _json_fields(detected: tuple[str, ...], field_of: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the fields of the columns of a JSON file.

    Raises:
        ValueError: DuckDB may have found columns that are no fields.
    """
    if field_of is None and may_hide_fields(detected):
        raise ValueError("some of its columns may be no fields")
    return detected if field_of is None else tuple(field_of.get(column, "") for column in detected)


def _dialect(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> dict[str, object]:
    """Return the settings of CSV files by the newest that can be read, and quotes by the newest that has some.

    Raises:
        BadInputError: none can be read; the error names the newest.
    """
    # Else a single line with too many values makes DuckDB take another delimiter.
    query = "SELECT Delimiter, HasHeader, Quote, Escape FROM sniff_csv(?, ignore_errors = true)"
    problems = list[BadInputError]()
    settings = dict[str, object]()
    for file in reversed(files):
        try:
            with reading(file, "csv"):
                # All rows are fetched: an open result would make the next error end the transaction of every file.
                ((delimiter, header, quote, escape),) = reader.execute(query, [str(file.path)]).fetchall()
        except BadInputError as error:
            problems.append(error)
            continue
        settings = settings or {"delimiter": delimiter, "header": header}
        if len(quote) == len(escape) == 1:
            return {**settings, "quote": quote, "escape": escape}
    if not settings:
        raise problems[0]
    return settings


def _detect(reader: duckdb.DuckDBPyConnection, relation: str) -> dict[str, DuckDBPyType]:
    """Return the columns that DuckDB detects, but that of the files: column -> type."""
    found = reader.sql(f"SELECT * FROM {relation}")
    return {name: kind for name, kind in zip(found.columns, found.types, strict=True) if name != FILE}


def _other_times(
    reader: duckdb.DuckDBPyConnection, files: list[LocalCopy], options: str, detected: Mapping[str, DuckDBPyType]
) -> list[str]:
    """Return the columns of CSV files with times that only DuckDB reads: 2025/12/31, or with the name of a zone."""
    times = [column for column, kind_of in detected.items() if str(kind_of).startswith("TIMESTAMP")]
    if not times:
        return []
    measures = ", ".join(f"bool_and(regexp_matches({identifier(column)}, '{_ISO_TIME}'))" for column in times)
    relation = relation_of("csv", files, f"{options}, all_varchar = true")
    found = reader.execute(f"SELECT {measures} FROM {relation}").fetchone() or ()
    return [column for column, is_iso in zip(times, found, strict=True) if not is_iso]


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


def _guess_of_avro(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> Guess:
    """Guess from the schemas of Avro files, which DuckDB cannot read; the newest file decides about types."""
    alone, rows, unread = list[dict[str, str]](), list[dict[str, object]](), list[str]()
    for file in files:
        try:
            with reading(file, "avro"), file.path.open("rb") as stream:
                fields, records = open_avro(stream)
                rows += [{**record, FILE: file.name} for record in records]
                alone.append({field.name: column_type(field.kind) for field in fields})
        except BadInputError as error:
            unread.append(str(error))
    if not alone:
        raise BadInputError(unread[0])
    remarks = mixed_fields(alone)
    columns = {name: kind for columns in alone for name, kind in columns.items()} | dict.fromkeys(remarks, "string")
    reader.register("delivered", _as_text(rows, columns))
    return Guess(columns, absent=absences(alone), relation="delivered", unread=tuple(unread), remarks=remarks)


def _as_text(rows: Iterable[Mapping[str, object]], columns: Mapping[str, str]) -> pa.Table:
    """Return rows with their values as text, which is enough to count them."""
    texts = [{name: _text(value, columns.get(name, "")) for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in (*columns, FILE)]))


def _text(value: object, kind: str) -> str | None:
    if isinstance(value, bytes) and kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2])
        return str(Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-scale, Context(prec=MAX_PREC)))
    return None if value is None else str(value)


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
