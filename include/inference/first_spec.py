"""Guess the first spec of a bronze table from the files of its source.

A person makes the guess once, and reviews, corrects and keeps the YAML file in git; no run ever guesses. DuckDB reads
the values. A later value that does not fit is rescued, as with any spec.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import yaml

from include.contracts.counted import counted
from include.contracts.spec.table_spec import parse_spec
from include.contracts.spec.values import NAME
from include.control.landing.formats.avro_files import avro_fields
from include.control.landing.formats.avro_schema import column_type
from include.control.landing.landing import Landing
from include.errors import BadInputError, first_line
from include.inference.delivered_files import DeliveredFiles, LocalCopy, copies, delivered_files

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
    """

    columns: dict[str, str]
    dialect: dict[str, object] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)


def infer_spec(landing: Landing, folder: str, table: str) -> str:
    """Return the text of a spec of `table` for the files below `<landing>/<folder>`; `lakehouse check` accepts it.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format with content.
        BadInputError: a file does not have the format of its name, or no column has a name that a table can use.
    """
    delivered = delivered_files(landing, folder)
    with TemporaryDirectory() as scratch, duckdb.connect() as reader:
        files = copies(landing, delivered, Path(scratch))
        guess = _guess_of_avro(files) if delivered.format == "avro" else _guess(reader, delivered.format, files)
    if not any(map(_is_name, guess.columns)):
        raise BadInputError(
            f"no column of the files in {landing.location(folder)} has a name that a table can use: "
            f"{', '.join(map(repr, guess.columns))}",
            "Name at least one column in small letters, digits and _, a letter first; the values of other columns go "
            "to _rescued.",
        )
    text = _text(table, delivered, guess)
    parse_spec(yaml.safe_load(text))
    return text


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
    columns = _detect(reader, kind, files, options)
    return Guess(columns, dialect, Counter() if kind == "json" else _absences(alone))


def _guess_of_avro(files: list[LocalCopy]) -> Guess:
    """Guess from the schemas of Avro files, which DuckDB cannot read; the newest file decides about types."""
    alone = []
    for file in files:
        with _named(file, "avro"), file.path.open("rb") as stream:
            alone.append({avro_field.name: column_type(avro_field.kind) for avro_field in avro_fields(stream)})
    return Guess({name: kind for columns in alone for name, kind in columns.items()}, absent=_absences(alone))


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
    paths = ", ".join(_quoted(str(file.path)) for file in files)
    relation = f"read_{kind}([{paths}], union_by_name = true, hive_partitioning = false{options})"
    rows = reader.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return {str(row[0]): spark_type(str(row[1])) for row in rows}


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
        f"source: {_flow({**source, **guess.dialect})}",
        "columns:",
    ]
    for name in filter(_is_name, guess.columns):
        comment = f"  # {guess.absent[name]} of the files lack it" if guess.absent[name] else ""
        lines.append(f"  {name}: {_flow({'type': guess.columns[name]})}{comment}")
    lines += [f"# no column name, so its values go to _rescued: {name!r}" for name in unnamed]
    return "\n".join(lines) + "\n"


def _flow(mapping: dict[str, object]) -> str:
    return yaml.safe_dump(mapping, default_flow_style=True, sort_keys=False, width=1000).strip()
