"""Rows that somebody has edited: JSON lines, each `{"id": ..., "record": {column: value}}`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from include.control.storage.json_lines import JsonLine, json_lines
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
    for line in _lines(text):
        row = _edited_row(line)
        if row.id in rows:
            raise BadInputError(f"line {line.number} is about row {row.id}, as an earlier line is: keep one of them")
        rows[row.id] = row
    return list(rows.values())


def _lines(text: str) -> Iterator[JsonLine]:
    try:
        yield from json_lines(text)
    except ValueError as error:
        raise BadInputError(str(error)) from error


def _edited_row(line: JsonLine) -> EditedRow:
    said = line.value
    record = said.get("record") if isinstance(said, dict) else None
    if not isinstance(record, dict) or not isinstance(said.get("id"), str):
        msg = (
            f'line {line.number} is no edited row: write {{"id": "...", "record": {{"column": value}}}}, as `show` '
            "prints it"
        )
        raise BadInputError(msg)
    return EditedRow(said["id"], line.text, tuple(record))
