"""What the files of a source say about its fields, and the errors of files that cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.nested_type import is_nested, nested_type
from millrace.control.landing.formats.csv_files import ends_within_quotes
from millrace.control.landing.inspection import columns_of
from millrace.control.landing.landing import LandingFile
from millrace.control.landing.on_disk import LocalLanding
from millrace.errors import BadInputError, first_line
from millrace.inference.delivered_files import LocalCopy

DIGITS_OF_DOUBLE = 15
"""The number of decimal digits that a double has of any number."""


@dataclass(frozen=True)
class Guess:
    """The result of reading all files.

    Attributes:
        fields: every field of any file, with its type.
        settings: the settings of the source that differ from the spec's defaults.
        absent: field -> number of files without it; empty for JSON, where records differ in their fields.
        relation: the rows of all files, as DuckDB's SQL, with the column `FILE`.
        columns: field -> its column of the relation, where the names differ.
        unread: the lines, files and columns that could not be read, each with the cause; the guess is without them.
        remarks: field -> what a person should know about it.
    """

    fields: dict[str, str]
    settings: dict[str, object] = field(default_factory=dict)
    absent: Counter[str] = field(default_factory=Counter)
    relation: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def reading(file: LocalCopy, kind: str) -> Iterator[None]:
    """Name the file in the error if it cannot be read.

    Raises:
        BadInputError: it cannot be read as `kind`.
    """
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, EOFError, ValueError) as error:
        raise BadInputError(f"{file.name} does not read as {kind}: {cause_of(error)}") from error


def cause_of(error: Exception) -> str:
    """Return the cause of an error; in DuckDB's errors on CSV files it is in the second or third line."""
    place, *lines = str(error).partition("\n\n")[0].split("\n")
    causes = [line for line in lines if not line.startswith(("Original Line", "LINE "))]
    return "; ".join([place.strip(), *causes]) if isinstance(error, duckdb.Error) else first_line(error)


def decimal_of(digits: int, scale: int) -> str:
    """Return a type for numbers with so many digits before and after the point, with room for longer ones, or text.

    >>> decimal_of(5, 2), decimal_of(20, 0), decimal_of(20, 20)
    ('decimal(18,2)', 'decimal(38,0)', 'string')
    """
    return next((f"decimal({most},{scale})" for most in (18, 38) if digits + scale <= most), "string")


def absences(files: list[dict[str, str]]) -> Counter[str]:
    """Return column -> number of files without it."""
    present = Counter(name for columns in files for name in columns)
    return Counter({name: len(files) - number for name, number in present.items() if number < len(files)})


def mixed_fields(files: list[dict[str, str]]) -> dict[str, str]:
    """Return the fields that have parts in some files alone, which only text holds, each with its types.

    >>> mixed_fields([{"id": "int", "v": "struct<a:int>"}, {"id": "bigint", "v": "int"}])
    {'v': 'of other types in other files: struct<a:int>, int'}
    """
    types: dict[str, list[str]] = {}
    for columns in files:
        for name, kind in columns.items():
            types.setdefault(name, []).append(kind)
    return {
        name: f"of other types in other files: {', '.join(dict.fromkeys(kinds))}"
        for name, kinds in types.items()
        if any(_have_other_parts(kinds[0], kind) for kind in kinds)
    }


def _have_other_parts(first: str, second: str) -> bool:
    if not is_nested(first) or not is_nested(second):
        return is_nested(first) is not is_nested(second)
    one, other = nested_type(first), nested_type(second)
    both = one.parts.keys() & other.parts.keys()
    return one.kind != other.kind or any(_have_other_parts(one.parts[name], other.parts[name]) for name in both)


def names_in_run(file: LocalCopy, kind: str, settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the names of the columns of a CSV or Parquet file as a run reads them; none without a header.

    Args:
        file: the file.
        kind: its format.
        settings: further settings of its source.

    Raises:
        ValueError: a run cannot read the file.
    """
    source = LandingSource.model_validate({"landing": ".", "format": kind, **settings})
    path = LandingFile(LocalLanding(str(file.path.parent)), file.path.name)
    names = columns_of(path, source)
    if kind == "csv" and source.multi_line and ends_within_quotes(path, source):
        raise ValueError(f"a value that begins with {source.quote} does not end, so that a run reads the rest as one")
    return names if source.header else ()
