"""Guess the first spec of a bronze table from the files of its source.

A person makes the guess once, and reviews, corrects and keeps the YAML file in git; no run ever guesses. DuckDB reads
the values. A later value that does not fit is rescued, as with any spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import fastavro
import pyarrow as pa
import yaml

from include.contracts.counted import counted
from include.contracts.spec.table_spec import parse_spec
from include.contracts.spec.values import NAME
from include.control.landing.formats.avro_files import avro_fields
from include.control.landing.formats.avro_schema import column_type
from include.control.landing.landing import Landing
from include.errors import BadInputError, first_line
from include.inference.delivered_files import DeliveredFiles, LocalCopy, copies, delivered_files
from include.inference.delivered_rows import FILE, DeliveredRows

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
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Guess:
    """The result of reading all files.

    Attributes:
        columns: every column of any file, with its type.
        dialect: the settings of CSV files that differ from the spec's defaults.
        absent: column -> number of files without it; empty for JSON, where records differ in their fields.
        relation: the rows of all files, as DuckDB's SQL, with the column `FILE`.
    """

    columns: dict[str, str]
    dialect: dict[str, object] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)
    relation: str = ""


@dataclass(frozen=True)
class GuessedSource:
    """A source whose files were read.

    Attributes:
        delivered: its files.
        guess: what they say about columns and dialect.
        rows: their rows, with the columns that a table can have; readable while the source is open.
    """

    delivered: DeliveredFiles
    guess: Guess
    rows: DeliveredRows

    def bronze_text(self, table: str) -> str:
        """Return the text of a spec of `table`; `lakehouse check` accepts it."""
        text = _text(table, self.delivered, self.guess)
        parse_spec(yaml.safe_load(text))
        return text


@contextmanager
def guessed_source(landing: Landing, folder: str) -> Iterator[GuessedSource]:
    """Read the files below `<landing>/<folder>`, and yield the guess, with the rows.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format with content.
        BadInputError: a file does not have the format of its name, or no column has a name that a table can use.
    """
    delivered = delivered_files(landing, folder)
    with TemporaryDirectory() as scratch, duckdb.connect() as reader:
        files = copies(landing, delivered, Path(scratch))
        guess = _guess_of_avro(reader, files) if delivered.format == "avro" else _guess(reader, delivered.format, files)
        names = list(filter(_is_name, guess.columns))
        if not names:
            raise BadInputError(
                f"no column of the files in {landing.location(folder)} has a name that a table can use: "
                f"{', '.join(map(repr, guess.columns))}",
                "Name at least one column in small letters, digits and _, a letter first; the values of other columns "
                "go to _rescued.",
            )
        yield GuessedSource(
            delivered, guess, DeliveredRows(reader, guess.relation, {name: guess.columns[name] for name in names})
        )


def _guess(reader: duckdb.DuckDBPyConnection, kind: str, files: list[LocalCopy]) -> Guess:
    """Guess from CSV, JSON and Parquet files; each is read alone first, so that errors name the file."""
    options, dialect = "", dict[str, object]()
    if kind == "csv":
        with _named(files[-1], kind):
            query = "SELECT Delimiter, HasHeader FROM sniff_csv(?)"
            delimiter, header = reader.execute(query, [str(files[-1].path)]).fetchone() or (",", True)
        options = f", sample_size = -1, delim = {_quoted(delimiter)}, header = {header}"
        dialect = {**({"delimiter": delimiter} if delimiter != "," else {}), **({} if header else {"header": False})}
    elif kind == "json":
        options = f", format = '{'auto' if any(file.holds_array for file in files) else 'newline_delimited'}'"
    alone = []
    for file in files:
        with _named(file, kind):
            alone.append(_detect(reader, kind, [file], options))
    columns, absent = _detect(reader, kind, files, options), Counter[str]() if kind == "json" else _absences(alone)
    return Guess(columns, dialect, absent, _relation(kind, files, f"{options}, filename = '{FILE}'"))


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
    rows = reader.execute(f"DESCRIBE SELECT * FROM {_relation(kind, files, options)}").fetchall()
    return {str(row[0]): spark_type(str(row[1])) for row in rows}


def _relation(kind: str, files: list[LocalCopy], options: str) -> str:
    paths = ", ".join(_quoted(str(file.path)) for file in files)
    return f"read_{kind}([{paths}], union_by_name = true, hive_partitioning = false{options})"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _absences(files: list[dict[str, str]]) -> Counter[str]:
    """Return column -> number of files without it."""
    present = Counter(name for columns in files for name in columns)
    return Counter({name: len(files) - number for name, number in present.items() if number < len(files)})


def spark_type(kind: str) -> str:
    """Return the column type for a type of DuckDB; text if bronze has no better type.

    >>> [spark_type(kind) for kind in ("BIGINT", "TIMESTAMP WITH TIME ZONE", "DECIMAL(9,2)", "STRUCT(x BIGINT)")]
    ['bigint', 'timestamp', 'decimal(9,2)', 'string']
    """
    if decimal := _DECIMAL.fullmatch(kind):
        return f"decimal({decimal[1]},{decimal[2]})"
    return "timestamp" if kind.startswith("TIMESTAMP") else _TYPES.get(kind, "string")


def _is_name(column: str) -> bool:
    return bool(re.fullmatch(NAME, column))


def _text(table: str, delivered: DeliveredFiles, guess: Guess) -> str:
    place = {} if delivered.by_day else {"path": "."}
    source = {"landing": delivered.folder, **place, "files": f"*{delivered.suffix}", "format": delivered.format}
    unnamed = [name for name in guess.columns if not _is_name(name)]
    ignored = f"# ignored by `files` below, files with other suffixes: {delivered.left_out}"
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# guessed from {counted(len(delivered.paths), 'file')}: review it, above all the types",
        *([ignored] if delivered.left_out else []),
        f"table: {table}",
        f"source: {flow({**source, **guess.dialect})}",
        "columns:",
    ]
    for name in filter(_is_name, guess.columns):
        comment = f"  # {guess.absent[name]} of the files lack it" if guess.absent[name] else ""
        lines.append(f"  {name}: {flow({'type': guess.columns[name]})}{comment}")
    lines += [f"# no column name, so its values go to _rescued: {name!r}" for name in unnamed]
    return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """Return a value in YAML, in one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000).strip()
