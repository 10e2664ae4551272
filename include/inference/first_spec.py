"""Guess the first spec of a bronze table from the files of its source.

A person makes the guess once, and reviews, corrects and keeps the YAML file in git; no run ever guesses. DuckDB reads
the values. A later value that does not fit is rescued, as with any spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import yaml
from duckdb.sqltypes import DuckDBPyType

from include.contracts.counted import counted
from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.nested_type import NestedType, column_type_of
from include.contracts.spec.record_fields import field_text
from include.contracts.spec.table_spec import parse_spec
from include.control.landing.inspection import columns_of
from include.control.landing.landing import Landing, LandingFile
from include.control.landing.on_disk import LocalLanding
from include.errors import BadInputError
from include.inference.avro_guess import guess_of_avro
from include.inference.column_names import column_names
from include.inference.delivered_files import DeliveredFiles, LocalCopy, copies, delivered_files
from include.inference.delivered_rows import FILE, DeliveredRows, identifier
from include.inference.guess import Guess, absences, cause_of, reading
from include.inference.json_lines import Records, may_hide_fields, records_of
from include.specs.files import SpecLoader

_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "UTINYINT": "smallint",
    "USMALLINT": "int",
    "UINTEGER": "bigint",
    # DuckDB gives these types to JSON numbers if some are negative; a number beyond a bigint is rescued.
    "UBIGINT": "bigint",
    "HUGEINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "BLOB": "binary",
}
_NESTED = {"struct": "struct", "list": "array"}
_ISO_ONLY = ", dateformat = '%Y-%m-%d', timestampformat = '%Y-%m-%d %H:%M:%S'"
"""Bronze casts dates and times of ISO 8601 alone; DuckDB would also take 31.12.2025 for a date."""

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True)
class GuessedSource:
    """A source whose files were read.

    Attributes:
        delivered: its files.
        guess: what they say about fields and dialect.
        names: column -> the field that it reads.
        rows: their rows, with the columns of the table; readable while the source is open.
    """

    delivered: DeliveredFiles
    guess: Guess
    names: dict[str, str]
    rows: DeliveredRows

    def bronze_text(self, table: str) -> str:
        """Return the text of a spec of `table`; `lakehouse check` accepts it."""
        text = _text(table, self.delivered, self.guess, self.names)
        parse_spec(yaml.load(text, SpecLoader))
        return text


@contextmanager
def guessed_source(landing: Landing, folder: str) -> Iterator[GuessedSource]:
    """Read the files below `<landing>/<folder>`, and yield the guess, with the rows.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format with content.
        BadInputError: no file has the format of its name, also where only its rows show it, or no record has a field.
    """
    delivered = delivered_files(landing, folder)
    with TemporaryDirectory() as scratch, duckdb.connect() as reader:
        files = copies(landing, delivered, Path(scratch))
        if delivered.format == "avro":
            guess = guess_of_avro(reader, files)
        else:
            guess = _guess(reader, delivered.format, files, Path(scratch))
        words = reader.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        names = column_names(filter(None, guess.fields), {word for (word,) in words.fetchall()})
        if not names:
            raise BadInputError(f"the records of the files in {landing.location(folder)} have no field")
        try:
            yield GuessedSource(delivered, guess, names, _rows(reader, guess, names))
        except duckdb.Error as error:
            files_of = f"the files in {landing.location(folder)}"
            raise BadInputError(f"{files_of} do not read as {delivered.format}: {cause_of(error)}") from error


def _rows(reader: duckdb.DuckDBPyConnection, guess: Guess, names: Mapping[str, str]) -> DeliveredRows:
    """Return the rows with the columns of the table instead of the fields."""
    stored = {name: guess.columns.get(field, field) for name, field in names.items()}
    columns = ", ".join(f"{identifier(column)} AS {identifier(name)}" for name, column in stored.items())
    types = {name: guess.fields[field] for name, field in names.items()}
    return DeliveredRows(reader, f"(SELECT {columns}, {FILE} FROM {guess.relation})", types)


def _guess(reader: duckdb.DuckDBPyConnection, kind: str, delivered: list[LocalCopy], scratch: Path) -> Guess:
    """Guess from CSV, JSON and Parquet files; each is read alone first, and one that cannot be read is left out."""
    options, settings, unread, files = "", dict[str, object](), list[str](), list[LocalCopy]()
    if kind == "csv":
        delimiter, header = _dialect(reader, delivered)
        options = f", sample_size = -1, delim = {_quoted(delimiter)}, header = {header}{_ISO_ONLY}"
        settings = {**({"delimiter": delimiter} if delimiter != "," else {}), **({} if header else {"header": False})}
    elif kind == "json":
        form = "auto" if any(file.holds_array for file in delivered) else "newline_delimited"
        options = f", sample_size = -1, format = '{form}'"
    alone, fields = list[dict[str, str]](), dict[str, str]()
    for each in delivered:
        try:
            read, detected = _read_alone(reader, kind, each, options, scratch)
            with reading(each, kind):
                names = _header(each, settings, tuple(detected)) if kind == "csv" else tuple(detected)
        except BadInputError as error:
            unread.append(str(error))
            continue
        files.append(read.file)
        unread += read.unread
        if read.any_case:
            settings["field_names"] = "any_case"
        # DuckDB takes columns of different files for the same, whatever the case of their names.
        named = {column.lower(): name for column, name in zip(detected, names, strict=True)}
        fields = named | fields
        if any(fields[column] != name for column, name in named.items()):
            settings["field_names"] = "any_case"
        alone.append({fields[column.lower()]: kind_of for column, kind_of in detected.items()})
    if not files:
        raise BadInputError(unread[0])
    detected, absent = _detect(reader, kind, files, options), Counter[str]() if kind == "json" else absences(alone)
    types = {fields.get(column.lower(), column): kind_of for column, kind_of in detected.items()}
    columns = {fields.get(column.lower(), column): column for column in detected}
    relation = _relation(kind, files, f"{options}, filename = '{FILE}'")
    return Guess(types, settings, absent, relation, columns, tuple(unread))


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


def _read_alone(
    reader: duckdb.DuckDBPyConnection, kind: str, file: LocalCopy, options: str, scratch: Path
) -> tuple[Records, dict[str, str]]:
    """Return the records of one file, and its columns with their types; JSON lines that are no records are left out.

    Raises:
        BadInputError: it cannot be read.
    """
    has_lines = kind == "json" and not file.holds_array
    try:
        with reading(file, kind):
            detected = _detect(reader, kind, [file], options)
            if has_lines:  # Some defects show only when all values are read.
                reader.execute(f"SELECT count(COLUMNS(*)) FROM {_relation(kind, [file], options)}").fetchall()
        if not (has_lines and may_hide_fields(detected)):
            return Records(file), detected
    except BadInputError:
        if not has_lines:
            raise
    with reading(file, kind):
        records = records_of(file, scratch)
        return records, _detect(reader, kind, [records.file], options)


def _header(file: LocalCopy, dialect: Mapping[str, object], detected: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns of a CSV file as a run reads them; DuckDB's if the file has no header."""
    source = LandingSource.model_validate({"landing": ".", "format": "csv", **dialect})
    names = columns_of(LandingFile(LocalLanding(str(file.path.parent)), file.path.name), source)
    return names if source.header and len(names) == len(detected) else detected


def _detect(reader: duckdb.DuckDBPyConnection, kind: str, files: list[LocalCopy], options: str) -> dict[str, str]:
    """Return the columns that DuckDB detects: column -> type."""
    found = reader.sql(f"SELECT * FROM {_relation(kind, files, options)}")
    return dict(zip(found.columns, map(spark_type, found.types), strict=True))


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
    return "timestamp" if text.startswith("TIMESTAMP") else _TYPES.get(text, "string")


def _text(table: str, delivered: DeliveredFiles, guess: Guess, names: Mapping[str, str]) -> str:
    place = {} if delivered.path == LandingSource.model_fields["path"].default else {"path": delivered.path}
    source = {"landing": delivered.folder, **place, "files": f"*{delivered.suffix}", "format": delivered.format}
    unread = f"# {counted(len(guess.unread), 'line or file', 'lines or files')} could not be read"
    ignored = f"# ignored by `files` below, files with other suffixes: {delivered.left_out}"
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# guessed from {counted(len(delivered.paths), 'file')}: review it, above all the types",
        *([ignored] if delivered.left_out else []),
        *([unread] if guess.unread else []),
        f"table: {table}",
        f"source: {flow({**source, **guess.settings})}",
        "columns:",
    ]
    for name, field_name in names.items():
        remarks = [f"{guess.absent[field_name]} of the files lack it"] if guess.absent[field_name] else []
        # `column_names` puts an underscore after words that SQL keeps for itself.
        remarks += [f"{field_name} would need quotes in SQL"] if name == f"{field_name}_" else []
        comment = f"  # {'; '.join(remarks)}" if remarks else ""
        stated = {"type": guess.fields[field_name], **({"from": field_text(field_name)} if name != field_name else {})}
        lines.append(f"  {name}: {flow(stated)}{comment}")
    return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """Return a value in YAML, in one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000).strip()
