"""The first spec of a bronze table, from what its source has delivered so far.

A guess is made once, by a person at a desk, and pinned in a YAML file that is read, mended and kept in git; no run ever
guesses. DuckDB looks at the values; a value that does not fit later is rescued, as with any spec.
"""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import duckdb
import yaml

from include.contracts.spec_values import NAME
from include.contracts.table_spec import parse_spec
from include.control.avro_files import avro_fields
from include.control.avro_schema import column_type
from include.control.compression import unpacked
from include.control.file_names import data_files
from include.control.json_arrays import is_array
from include.control.landing import Landing
from include.control.local_landing import LocalLanding
from include.errors import BadInputError, NotReadyError, first_line

FILES_LOOKED_AT = 20
"""The last files by name, which are the newest where names hold a date."""

_FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".avro": "avro",
}
_DAY_FOLDER = re.compile(r"date=\d{4}-\d{2}-\d{2}")
_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "UTINYINT": "smallint",
    "USMALLINT": "int",
    "UINTEGER": "bigint",
    # DuckDB's words for JSON numbers of which some are negative; one beyond a bigint is rescued.
    "UBIGINT": "bigint",
    "HUGEINT": "bigint",
    "FLOAT": "float",
    "DOUBLE": "double",
    "DATE": "date",
    "BLOB": "binary",
}
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Delivered:
    """The files that a spec is guessed from.

    Attributes:
        folder: the feed's folder below the landing root.
        paths: the files, all of one format: as the landing names them, or copies on this machine.
        format: `csv`, `json`, `parquet` or `avro`.
        suffix: how their names end, such as `.csv.gz`.
        by_day: whether they lie in folders such as `date=2013-01-01`.
        left_out: how many files of other suffixes lie beside them.
    """

    folder: str
    paths: tuple[str, ...]
    format: str
    suffix: str
    by_day: bool
    left_out: int = 0


def infer_spec(landing: Landing, folder: str, table: str) -> str:
    """The text of a spec of `table` for the files below `<landing>/<folder>`, which `lakehouse check` accepts.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format in it.
        BadInputError: the files cannot be read as what their names say they are.
    """
    delivered = delivered_files(landing, folder)
    with TemporaryDirectory() as scratch:
        delivered = replace(delivered, paths=_on_this_machine(landing, delivered.paths, Path(scratch)))
        try:
            dialect, columns = _avro_columns(delivered) if delivered.format == "avro" else _columns(delivered)
        except (duckdb.Error, ValueError) as error:
            said = first_line(error)
            msg = f"the files in {landing.place(folder)} do not read as {delivered.format}: {said}"
            raise BadInputError(msg) from error
    text = _text(table, delivered, dialect, columns)
    parse_spec(yaml.safe_load(text))
    return text


def _columns(delivered: Delivered) -> tuple[dict[str, object], dict[str, str]]:
    """(how CSV files are written, column -> type), as DuckDB sees them."""
    with duckdb.connect() as reader:
        dialect = _dialect(reader, delivered)
        found = reader.execute(f"DESCRIBE SELECT * FROM {_relation(delivered)}").fetchall()
    return dialect, {str(row[0]): spark_type(str(row[1])) for row in found}


def _avro_columns(delivered: Delivered) -> tuple[dict[str, object], dict[str, str]]:
    """(nothing, column -> type) by the files' own schemas, which DuckDB cannot read; the newest file's word counts."""
    found: dict[str, str] = {}
    for path in delivered.paths:
        with Path(path).open("rb") as stream:
            found |= {field.name: column_type(field.kind) for field in avro_fields(stream)}
    return {}, found


def delivered_files(landing: Landing, folder: str) -> Delivered:
    """The last files below the folder, of the format that most of them have.

    Raises:
        NotReadyError: there are none.
    """
    known = sorted(file.path for file in landing.files(folder, data_files("*")) or () if _suffix(file.path))
    if not known:
        msg = (
            f"{landing.place(folder)} holds no file that ends in {', '.join(_FORMATS)} (CSV and JSON also with .gz or "
            ".zst): a spec is guessed from what was delivered. Name a folder below the landing root "
            "(LAKEHOUSE_LANDING)."
        )
        raise NotReadyError(msg)
    ((suffix, alike),) = Counter(map(_suffix, known)).most_common(1)
    paths = [path for path in known if _suffix(path) == suffix][-FILES_LOOKED_AT:]
    by_day = all(_DAY_FOLDER.fullmatch(path.removeprefix(f"{folder}/").split("/")[0]) for path in paths)
    return Delivered(folder, tuple(paths), _FORMATS[f".{suffix.split('.')[1]}"], suffix, by_day, len(known) - alike)


def spark_type(kind: str) -> str:
    """The column type for a type that DuckDB found; text where a bronze column has nothing better.

    >>> [spark_type(kind) for kind in ("BIGINT", "TIMESTAMP WITH TIME ZONE", "DECIMAL(9,2)", "STRUCT(x BIGINT)")]
    ['bigint', 'timestamp', 'decimal(9,2)', 'string']
    """
    if decimal := _DECIMAL.fullmatch(kind):
        return f"decimal({decimal[1]},{decimal[2]})"
    return "timestamp" if kind.startswith("TIMESTAMP") else _TYPES.get(kind, "string")


def _on_this_machine(landing: Landing, paths: tuple[str, ...], scratch: Path) -> tuple[str, ...]:
    """The files' own paths; of files in a bucket, those of copies in `scratch`."""
    return tuple(_copied(landing, path, scratch / str(number)) for number, path in enumerate(paths))


def _copied(landing: Landing, path: str, folder: Path) -> str:
    if isinstance(landing, LocalLanding):
        return landing.place(path)
    folder.mkdir()
    copy = folder / PurePosixPath(path).name
    with landing.open(path) as content, copy.open("wb") as target:
        shutil.copyfileobj(content, target)
    return str(copy)


def _suffix(path: str) -> str:
    """`.csv` or `.csv.gz` and the like; empty for a file of no known format."""
    found = re.search(r"(\.[a-z]+?)(\.gz|\.zst)?$", path)
    return found[0] if found and found[1] in _FORMATS else ""


def _relation(delivered: Delivered) -> str:
    paths = ", ".join("'" + path.replace("'", "''") + "'" for path in delivered.paths)
    lines = "auto" if delivered.format == "json" and any(map(_is_array, delivered.paths)) else "newline_delimited"
    more = {"csv": ", sample_size = -1", "json": f", format = '{lines}'", "parquet": ""}[delivered.format]
    return f"read_{delivered.format}([{paths}], union_by_name = true, hive_partitioning = false{more})"


def _is_array(path: str) -> bool:
    with Path(path).open("rb") as stored, unpacked(path, stored) as content:
        return is_array(io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace"))


def _dialect(reader: duckdb.DuckDBPyConnection, delivered: Delivered) -> dict[str, object]:
    """What of the way in which CSV files are written differs from the spec's defaults."""
    if delivered.format != "csv":
        return {}
    query = "SELECT Delimiter, HasHeader FROM sniff_csv(?)"
    delimiter, header = reader.execute(query, [delivered.paths[-1]]).fetchone() or (",", True)
    return {**({"delimiter": delimiter} if delimiter != "," else {}), **({} if header else {"header": False})}


def _text(table: str, delivered: Delivered, dialect: dict[str, object], columns: dict[str, str]) -> str:
    place = {} if delivered.by_day else {"path": "."}
    source = {"landing": delivered.folder, **place, "files": f"*{delivered.suffix}", "format": delivered.format}
    declared = {name: kind for name, kind in columns.items() if re.fullmatch(NAME, name)}
    others = [f"# no column name, so its values go to _rescued: {name!r}" for name in columns if name not in declared]
    number = delivered.left_out
    left_out = [f"# left out by `files` below: {number} that end otherwise"] if number else []
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# guessed from {len(delivered.paths)} files: read it through, above all the types",
        *left_out,
        f"table: {table}",
        f"source: {_flow({**source, **dialect})}",
        "columns:",
        *(f"  {name}: {_flow({'type': kind})}" for name, kind in declared.items()),
        *others,
    ]
    return "\n".join(lines) + "\n"


def _flow(mapping: dict[str, object]) -> str:
    return yaml.safe_dump(mapping, default_flow_style=True, sort_keys=False, width=1000).strip()
