"""Rows that somebody has edited: JSON lines, each `{"id": ..., "record": {column: value}}`."""

from __future__ import annotations

import json
from dataclasses import dataclass

from include.errors import BadInputError


@dataclass(frozen=True)
class EditedRow:
    """One line.

    Attributes:
        id: of the quarantined row.
        line: the whole line; its numbers are read by Spark, which keeps every digit.
        columns: the columns that it states.
    """

    id: str
    line: str
    columns: tuple[str, ...]


def edited_rows(text: str) -> list[EditedRow]:
    """The rows of a file.

    Raises:
        BadInputError: a line is no such row, or two are about the same one.
    """
    rows: dict[str, EditedRow] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            row = _edited_row(line, number)
            if row.id in rows:
                raise BadInputError(f"line {number} is about row {row.id}, as an earlier line is: keep one of them")
            rows[row.id] = row
    return list(rows.values())


def _edited_row(line: str, number: int) -> EditedRow:
    try:
        said = json.loads(line)
    except json.JSONDecodeError as error:
        raise BadInputError(f"line {number} is no JSON: {error.msg} at column {error.colno}") from error
    record = said.get("record") if isinstance(said, dict) else None
    if not isinstance(record, dict) or not isinstance(said.get("id"), str):
        msg = (
            f'line {number} is no edited row: write {{"id": "...", "record": {{"column": value}}}}, as `show` prints it'
        )
        raise BadInputError(msg)
    return EditedRow(said["id"], line, tuple(record))
