"""JSON lines that a guess can be made from: the lines that are records, with one spelling for each field."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from include.control.landing.formats.compression import open_unpacked
from include.errors import BadInputError, first_line
from include.inference.delivered_files import LocalCopy

_NUMBERED = re.compile(r"(.+)_\d+")
"""DuckDB's name for a field that differs from an earlier one only in upper and lower case."""


@dataclass(frozen=True)
class Records:
    """The records of a file.

    Attributes:
        file: a copy of the file with nothing but its records.
        unread: each line that is no record, with the cause.
        any_case: whether a field has several spellings, of which the copy has the first.
    """

    file: LocalCopy
    unread: tuple[str, ...] = ()
    any_case: bool = False


def may_hide_fields(columns: Collection[str]) -> bool:
    """Return whether columns that DuckDB found may be no fields: one for lines that are no records, or a numbered one.

    >>> [may_hide_fields(columns) for columns in (["json"], ["id", "ID_1"], ["id", "id_at", "line_1"])]
    [True, True, False]
    """
    names = {name.lower() for name in columns}
    numbered = (match[1].lower() for match in map(_NUMBERED.fullmatch, columns) if match)
    return names == {"json"} or any(name in names for name in numbered)


def records_of(file: LocalCopy, folder: Path) -> Records:
    """Copy the records of a file of JSON lines to a folder.

    Raises:
        BadInputError: no line is a record.
        OSError, EOFError, ValueError: the file cannot be unpacked.
    """
    spellings, unread, found, renamed = dict[str, str](), list[str](), 0, False
    copy = folder / f"records_{len(list(folder.iterdir()))}.json"
    with copy.open("w", encoding="utf-8") as target:
        for number, line in _lines(file):
            try:
                record = _record(line)
            except ValueError as error:
                # The place in the error of a decoder is one within the line.
                cause = error.msg if isinstance(error, json.JSONDecodeError) else first_line(error)
                unread.append(f"{file.name}, line {number}: {cause}")
                continue
            named: dict[str, Any] = {}
            for key, value in record.items():
                name = spellings.setdefault(key.lower(), key)
                named[name] = value if named.get(name) is None else named[name]
                renamed |= name != key
            target.write(f"{json.dumps(named)}\n")
            found += 1
    if not found:
        raise BadInputError(f"{unread[0]}; no line of the file is a JSON object")
    return Records(replace(file, path=copy), tuple(unread), renamed)


def _lines(file: LocalCopy) -> Iterator[tuple[int, bytes]]:
    with file.path.open("rb") as stored, open_unpacked(file.path.name, stored) as content:
        yield from (
            (number, line)
            for number, line in enumerate(io.BufferedReader(cast(io.RawIOBase, content)), 1)
            if line.strip()
        )


def _record(line: bytes) -> dict[str, Any]:
    value = json.loads(line.decode(), object_pairs_hook=_without_repetition)
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        repeated = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"two fields have the name {repeated}")
    return values
