"""Guess the first spec of a bronze table from the files of its source.

A person makes the guess once, and reviews, corrects and keeps the YAML file in git; no run ever guesses. DuckDB reads
the values. A later value that does not fit is rescued, as with any spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import fastavro
import pyarrow as pa
import yaml
from duckdb.sqltypes import DuckDBPyType

from include.contracts.counted import counted
from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.nested_type import NestedType, nested_type
from include.contracts.spec.record_fields import field_text
from include.contracts.spec.table_spec import parse_spec
from include.control.landing.formats.avro_files import avro_fields
from include.control.landing.formats.avro_schema import column_type
from include.control.landing.inspection import columns_of
from include.control.landing.landing import Landing, LandingFile
from include.control.landing.on_disk import LocalLanding
from include.errors import BadInputError, first_line
from include.inference.column_names import column_names
from include.inference.delivered_files import DeliveredFiles, LocalCopy, copies, delivered_files
from include.inference.delivered_rows import FILE, DeliveredRows, identifier
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
class Guess:
    """The result of reading all files.

    Attributes:
        fields: every field of any file, with its type.
        settings: the settings of the source that differ from the spec's defaults.
        absent: field -> number of files without it; empty for JSON, where records differ in their fields.
        relation: the rows of all files, as DuckDB's SQL, with the column `FILE`.
        columns: field -> its column of the relation, where the names differ.
    """

    fields: dict[str, str]
    settings: dict[str, object] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)
    relation: str = ""
    columns: dict[str, str] = field(default_factory=dict)


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
        BadInputError: a file does not have the format of its name, also where only its rows show it, or no record has a
            field.
    """
    delivered = delivered_files(landing, folder)
    with TemporaryDirectory() as scratch, duckdb.connect() as reader:
        files = copies(landing, delivered, Path(scratch))
        guess = _guess_of_avro(reader, files) if delivered.format == "avro" else _guess(reader, delivered.format, files)
        words = reader.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
        names = column_names(filter(None, guess.fields), {word for (word,) in words.fetchall()})
        if not names:
            raise BadInputError(f"the records of the files in {landing.location(folder)} have no field")
        try:
            yield GuessedSource(delivered, guess, names, _rows(reader, guess, names))
        except duckdb.Error as error:
            files_of = f"the files in {landing.location(folder)}"
            raise BadInputError(f"{files_of} do not read as {delivered.format}: {_cause(error)}") from error


def _rows(reader: duckdb.DuckDBPyConnection, guess: Guess, names: Mapping[str, str]) -> DeliveredRows:
    """Return the rows with the columns of the table instead of the fields."""
    stored = {name: guess.columns.get(field, field) for name, field in names.items()}
    columns = ", ".join(f"{identifier(column)} AS {identifier(name)}" for name, column in stored.items())
    types = {name: guess.fields[field] for name, field in names.items()}
    return DeliveredRows(reader, f"(SELECT {columns}, {FILE} FROM {guess.relation})", types)


def _guess(reader: duckdb.DuckDBPyConnection, kind: str, files: list[LocalCopy]) -> Guess:
    """Guess from CSV, JSON and Parquet files; each is read alone first, so that errors name the file."""
    options, settings = "", dict[str, object]()
    if kind == "csv":
        with _named(files[-1], kind):
            query = "SELECT Delimiter, HasHeader FROM sniff_csv(?)"
            delimiter, header = reader.execute(query, [str(files[-1].path)]).fetchone() or (",", True)
        options = f", sample_size = -1, delim = {_quoted(delimiter)}, header = {header}{_ISO_ONLY}"
        settings = {**({"delimiter": delimiter} if delimiter != "," else {}), **({} if header else {"header": False})}
    elif kind == "json":
        options = f", format = '{'auto' if any(file.holds_array for file in files) else 'newline_delimited'}'"
    alone, fields = list[dict[str, str]](), dict[str, str]()
    for file in files:
        with _named(file, kind):
            detected = _detect(reader, kind, [file], options)
            names = _header(file, settings, tuple(detected)) if kind == "csv" else tuple(detected)
        # DuckDB takes columns of different files for the same, whatever the case of their names.
        named = {column.lower(): name for column, name in zip(detected, names, strict=True)}
        fields = named | fields
        if any(fields[column] != name for column, name in named.items()):
            settings["field_names"] = "any_case"
        alone.append({fields[column.lower()]: kind_of for column, kind_of in detected.items()})
    detected, absent = _detect(reader, kind, files, options), Counter[str]() if kind == "json" else _absences(alone)
    types = {fields.get(column.lower(), column): kind_of for column, kind_of in detected.items()}
    columns = {fields.get(column.lower(), column): column for column in detected}
    return Guess(types, settings, absent, _relation(kind, files, f"{options}, filename = '{FILE}'"), columns)


def _header(file: LocalCopy, dialect: Mapping[str, object], detected: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns of a CSV file as a run reads them; DuckDB's if the file has no header."""
    source = LandingSource.model_validate({"landing": ".", "format": "csv", **dialect})
    names = columns_of(LandingFile(LocalLanding(str(file.path.parent)), file.path.name), source)
    return names if source.header and len(names) == len(detected) else detected


def _guess_of_avro(reader: duckdb.DuckDBPyConnection, files: list[LocalCopy]) -> Guess:
    """Guess from the schemas of Avro files, which DuckDB cannot read; the newest file decides about types."""
    alone = []
    for file in files:
        with _named(file, "avro"), file.path.open("rb") as stream:
            alone.append({avro_field.name: column_type(avro_field.kind) for avro_field in avro_fields(stream)})
    columns = {name: kind for columns in alone for name, kind in columns.items()}
    reader.register("delivered", _avro_rows(files, columns))
    return Guess(columns, absent=_absences(alone), relation="delivered")


def _avro_rows(files: list[LocalCopy], columns: Iterable[str]) -> pa.Table:
    """Return the rows of Avro files as text, which is enough to count values."""
    rows = []
    for file in files:
        with _named(file, "avro"), file.path.open("rb") as stream:
            rows += [{**record, FILE: file.name} for record in fastavro.reader(stream) if isinstance(record, dict)]
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    return pa.Table.from_pylist(texts, pa.schema([(name, pa.string()) for name in (*columns, FILE)]))


@contextmanager
def _named(file: LocalCopy, kind: str) -> Iterator[None]:
    try:
        yield
    except (duckdb.Error, ValueError) as error:
        raise BadInputError(f"{file.name} does not read as {kind}: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    """Return the cause of an error; in DuckDB's errors on CSV files it is in the second or third line."""
    place, *lines = str(error).partition("\n\n")[0].split("\n")
    causes = [line for line in lines if not line.startswith(("Original Line", "LINE "))]
    return "; ".join([place.strip(), *causes]) if isinstance(error, duckdb.Error) else first_line(error)


def _detect(reader: duckdb.DuckDBPyConnection, kind: str, files: list[LocalCopy], options: str) -> dict[str, str]:
    """Return the columns that DuckDB detects: column -> type."""
    found = reader.sql(f"SELECT * FROM {_relation(kind, files, options)}")
    return dict(zip(found.columns, map(spark_type, found.types), strict=True))


def _relation(kind: str, files: list[LocalCopy], options: str) -> str:
    paths = ", ".join(_quoted(str(file.path)) for file in files)
    return f"read_{kind}([{paths}], union_by_name = true, hive_partitioning = false{options})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _absences(files: list[dict[str, str]]) -> Counter[str]:
    """Return column -> number of files without it."""
    present = Counter(name for columns in files for name in columns)
    return Counter({name: len(files) - number for name, number in present.items() if number < len(files)})


def spark_type(kind: DuckDBPyType) -> str:
    """Return the column type for a type of DuckDB; text if bronze has no better type.

    >>> kinds = ("BIGINT", "TIMESTAMP WITH TIME ZONE", "DECIMAL(9,2)", "STRUCT(x BIGINT)[]", 'STRUCT("x y" BIGINT)')
    >>> [spark_type(duckdb.sqltype(kind)) for kind in kinds]
    ['bigint', 'timestamp', 'decimal(9,2)', 'array<struct<x:bigint>>', 'string']
    """
    if kind.id in _NESTED:
        parts = {name: spark_type(part) for name, part in kind.children if isinstance(part, DuckDBPyType)}
        try:
            nested = str(NestedType(_NESTED[kind.id], parts))
            return "string" if "binary" in parts.values() else str(nested_type(nested))
        except ValueError:  # A name within it, or its depth, is not possible: as text, it loses nothing.
            return "string"
    text = str(kind)
    if decimal := _DECIMAL.fullmatch(text):
        return f"decimal({decimal[1]},{decimal[2]})"
    return "timestamp" if text.startswith("TIMESTAMP") else _TYPES.get(text, "string")


def _text(table: str, delivered: DeliveredFiles, guess: Guess, names: Mapping[str, str]) -> str:
    place = {} if delivered.path == LandingSource.model_fields["path"].default else {"path": delivered.path}
    source = {"landing": delivered.folder, **place, "files": f"*{delivered.suffix}", "format": delivered.format}
    ignored = f"# ignored by `files` below, files with other suffixes: {delivered.left_out}"
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# guessed from {counted(len(delivered.paths), 'file')}: review it, above all the types",
        *([ignored] if delivered.left_out else []),
        f"table: {table}",
        f"source: {flow({**source, **guess.settings})}",
        "columns:",
    ]
    for name, field_name in names.items():
        comment = f"  # {guess.absent[field_name]} of the files lack it" if guess.absent[field_name] else ""
        stated = {"type": guess.fields[field_name], **({"from": field_text(field_name)} if name != field_name else {})}
        lines.append(f"  {name}: {flow(stated)}{comment}")
    return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """Return a value in YAML, in one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000).strip()
