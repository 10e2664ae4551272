"""The columns of quarantined rows that a person may fix, also those whose value is null."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Any

from millrace.contracts.spec.change_data import SOURCE_TABLE
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, SilverSpec
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.quarantine.rescued import RESCUED
from millrace.errors import BadInputError
from millrace.paths import LakehousePaths
from millrace.specs.invalid_spec import InvalidSpec
from millrace.specs.problem import did_you_mean

UNPARSED = "_corrupt_record"
"""The column with the text of a record that could not be parsed; of a CSV file it also has columns, as far as read."""

UNDECLARED = (RESCUED, UNPARSED)
"""The columns with content of the source that no spec declares."""

FixableColumns = Callable[[str], Sequence[str]]
"""Returns the columns of a source, the empty text for those of all sources of a table."""


def fixable_columns(spec: AnySpec | InvalidSpec | None, paths: LakehousePaths) -> FixableColumns:
    """Return what returns the columns that rows of a table have when it receives them; it looks once for each source.

    A silver table receives the columns of bronze. Without a sound spec, no column is known.
    """
    if not isinstance(spec, BronzeSpec | SilverSpec):
        return lambda _: ()

    @cache
    def columns(source: str) -> list[str]:
        bronze = (spec.table,) if isinstance(spec, BronzeSpec) else (source,) if source else spec.source_tables
        declared = spec.columns if isinstance(spec, BronzeSpec) else ()
        folders = [folder for table in bronze if is_table(folder := paths.table(table))]
        # The spec does not know the columns that new fields have become.
        stored = [field.name for folder in folders for field in open_table(folder, without_files=True).schema().fields]
        return [name for name in dict.fromkeys((*declared, *stored)) if not name.startswith("_")]

    return columns


def is_fixable(name: str) -> bool:
    """Whether a column of a received row has content that a person may fix, and does not say when or whence it came."""
    return not name.startswith("_") or name in UNDECLARED


def require_fixable(names: Iterable[str], columns: Collection[str]) -> None:
    """Check the columns that a person names, before anything is fixed.

    Raises:
        BadInputError: a row has no such column.
    """
    if unknown := next((name for name in names if name not in columns), None):
        raise BadInputError(f"a row as it was received has no column {unknown!r}: {did_you_mean(unknown, columns)}")


def with_nulls(received: dict[str, Any], columns: FixableColumns) -> dict[str, Any]:
    """Return a received row, which leaves nulls out, with a null for each column that it lacks."""
    if not received or UNPARSED in received:
        return received
    lacked = (name for name in columns(received.get(SOURCE_TABLE, "")) if name not in received)
    return received | dict.fromkeys(lacked)
