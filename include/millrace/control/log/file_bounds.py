"""The least and the greatest values of a column in the data files of a version, by the log."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from millrace.contracts.lake_path import LakePath
from millrace.control.log.stored_tables import logged_files, open_table


@dataclass(frozen=True)
class FileBounds:
    """The extremes of a column of whole numbers or dates.

    Attributes:
        least: the least value of each data file.
        greatest: the greatest value of each data file.
    """

    least: Set[Any] = frozenset()
    greatest: Set[Any] = frozenset()


def file_bounds(table: LakePath, version: int, column: str) -> FileBounds:
    """Return the extremes that the log has of a version's files; none of files without statistics.

    A table with deletion vectors or mapped columns has none: a deleted row may have had the extreme of its file, and
    statistics have other names. A column with days that Python does not know has none either.

    Raises:
        DeltaError: the version cannot be opened.
    """
    delta = open_table(table, version)
    if delta.protocol().reader_features:
        return FileBounds()
    listed = logged_files(delta)
    sides = (f"min.{column}", f"max.{column}")
    try:
        bounds = [
            frozenset(listed[name].drop_null().to_pylist()) if name in listed.column_names else frozenset()
            for name in sides
        ]
    except (OverflowError, ValueError):  # Python has no days outside of the years 1 to 9999
        return FileBounds()
    return FileBounds(*bounds)
