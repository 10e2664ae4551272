"""Rows that a person has edited: JSON lines, each `{"id": ..., "record": {column: value}}`."""

from __future__ import annotations

from dataclasses import dataclass

from millrace.control.storage.json_lines import json_lines
from millrace.errors import BadInputError


@dataclass(frozen=True)
class EditedRow:
    """One edited row.

    Attributes:
        id: the id of the quarantined row.
        line: the whole line; Spark reads its numbers, and keeps every digit.
        columns: the columns that have a value in it.
    """

    id: str
    line: str
    columns: tuple[str, ...]


def edited_rows(text: str) -> list[EditedRow]:
    """Return the rows of a file.

    Raises:
        BadInputError: a line is no edited row, or two lines edit the same row.
    """
    rows: dict[str, EditedRow] = {}
    try:
        for line in json_lines(text):
            record = line.value.get("record") if isinstance(line.value, dict) else None
            if not isinstance(record, dict) or not isinstance(row_id := line.value.get("id"), str):
                raise BadInputError(
                    f"line {line.number} is no edited row",
                    'Write {"id": "...", "record": {"column": value}}, as `lakehouse quarantine show` prints it.',
                )
            if row_id in rows:
                raise BadInputError(f"line {line.number} edits row {row_id}, as an earlier line does: keep one of them")
            rows[row_id] = EditedRow(row_id, line.text, tuple(record))
    except ValueError as error:
        raise BadInputError(str(error)) from error
    return list(rows.values())
