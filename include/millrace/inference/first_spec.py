"""Guess the first spec of a bronze table from the files of its source.

A person makes the guess once, and reviews, corrects and keeps the YAML file in git; no run ever guesses. DuckDB reads
the values. A later value that does not fit is rescued, as with any spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import yaml

from millrace.contracts.counted import counted
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.record_fields import field_text
from millrace.contracts.spec.table_spec import parse_spec
from millrace.control.landing.landing import Landing
from millrace.errors import BadInputError
from millrace.inference.column_names import names_of_fields
from millrace.inference.delivered_fields import guess_of_files
from millrace.inference.delivered_files import DeliveredFiles, copies, files_of_source
from millrace.inference.delivered_rows import FILE, DeliveredRows, identifier
from millrace.inference.guess import Guess, cause_of
from millrace.inference.readings import FieldReading, readings_of
from millrace.specs.files import SpecLoader


@dataclass(frozen=True)
class GuessedSource:
    """A source whose files were read.

    Attributes:
        delivered: its files.
        guess: what they say about fields and dialect.
        names: column -> the field that it reads.
        readings: field -> how it is read.
        rows: their rows, with the columns of the table; readable while the source is open.
    """

    delivered: DeliveredFiles
    guess: Guess
    names: dict[str, str]
    readings: dict[str, FieldReading]
    rows: DeliveredRows

    def bronze_text(self, table: str) -> str:
        """Return the text of a spec of `table`; `lakehouse check` accepts it."""
        text = _text(table, self)
        parse_spec(yaml.load(text, SpecLoader))
        return text


@contextmanager
def guessed_source(
    landing: Landing, folder: str, scratch_within: str | None = None, memory: int | None = None
) -> Iterator[GuessedSource]:
    """Read the files below `<landing>/<folder>`, and yield the guess, with the rows.

    Args:
        landing: where the files are.
        folder: the folder of the source.
        scratch_within: the folder for temporary files; by default that of this machine.
        memory: the most bytes that DuckDB takes; by default four fifths of the memory.

    Raises:
        NotReadyError: there is no such folder, or no file of a known format with content.
        BadInputError: no file has the format of its name, also where only its rows show it, or no record has a field.
        MemoryError: the rows need more memory.
    """
    delivered = files_of_source(landing, folder)
    most = {"memory_limit": f"{memory}B"} if memory else {}
    try:
        with (
            TemporaryDirectory(dir=scratch_within) as scratch,
            duckdb.connect(config={"temp_directory": scratch, **most}) as reader,
        ):
            files = copies(landing, delivered, Path(scratch))
            guess = guess_of_files(reader, delivered.format, files, Path(scratch))
            words = reader.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'")
            names = names_of_fields(filter(None, guess.fields), {word for (word,) in words.fetchall()})
            if not names:
                raise BadInputError(f"the records of the files in {landing.location(folder)} have no field")
            columns = {field: guess.columns.get(field, field) for field in names.values()}
            readings = readings_of(reader, guess.relation, columns, guess.fields)
            yield GuessedSource(delivered, guess, names, readings, _rows(reader, guess.relation, names, readings))
    except duckdb.OutOfMemoryException as error:
        raise MemoryError(cause_of(error)) from error
    except duckdb.Error as error:
        files_of = f"the files in {landing.location(folder)}"
        raise BadInputError(f"{files_of} do not read as {delivered.format}: {cause_of(error)}") from error


def _rows(
    reader: duckdb.DuckDBPyConnection, relation: str, names: Mapping[str, str], readings: Mapping[str, FieldReading]
) -> DeliveredRows:
    """Return the rows with the columns of the table instead of the fields."""
    columns = ", ".join(f"{readings[field].value} AS {identifier(name)}" for name, field in names.items())
    types = {name: readings[field].type for name, field in names.items()}
    return DeliveredRows(reader, f"(SELECT {columns}, {FILE} FROM {relation})", types)


def _text(table: str, source: GuessedSource) -> str:
    delivered, guess = source.delivered, source.guess
    place = {} if delivered.path == LandingSource.model_fields["path"].default else {"path": delivered.path}
    files = {"landing": delivered.folder, **place, "files": f"*{delivered.suffix}", "format": delivered.format}
    unread = f"# {counted(len(guess.unread), 'line or file', 'lines or files')} could not be read"
    ignored = f"# ignored by `files` below, files with other suffixes: {delivered.left_out}"
    lines = [
        "# yaml-language-server: $schema=../../../table_spec.schema.json",
        f"# guessed from {counted(len(delivered.paths), 'file')}: review it, above all the types",
        *([ignored] if delivered.left_out else []),
        *([unread] if guess.unread else []),
        f"table: {table}",
        f"source: {flow({**files, **guess.settings})}",
        "columns:",
    ]
    for name, field_name in source.names.items():
        reading = source.readings[field_name]
        remarks = [f"{guess.absent[field_name]} of the files lack it"] if guess.absent[field_name] else []
        remarks += [guess.remarks[field_name]] if field_name in guess.remarks else []
        # `names_of_fields` puts an underscore after words that SQL keeps for itself.
        remarks += [f"{field_name} would need quotes in SQL"] if name == f"{field_name}_" else []
        comment = f"  # {'; '.join(remarks)}" if remarks else ""
        path = {"from": field_text(field_name)} if name != field_name else {}
        stated = {"type": reading.type, **path, **reading.settings}
        lines.append(f"  {name}: {flow(stated)}{comment}")
    return "\n".join(lines) + "\n"


class _SpecDumper(yaml.SafeDumper):
    """Quotes text that a spec would take for a value of another type, such as the code 1e3."""


for _first, _resolvers in SpecLoader.yaml_implicit_resolvers.items():
    for _tag, _pattern in _resolvers:
        _SpecDumper.add_implicit_resolver(_tag, _pattern, [_first])


def flow(value: object) -> str:
    """Return a value in YAML, in one line.

    >>> flow({"value_set": ["1e3", "b"], "min_value": 1e-05})
    "{value_set: ['1e3', b], min_value: 1.0e-05}"
    """
    style: dict[str, Any] = {"default_flow_style": True, "sort_keys": False, "allow_unicode": True, "width": 1_000_000}
    return str(yaml.dump(value, Dumper=_SpecDumper, **style)).strip()
