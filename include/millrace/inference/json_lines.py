"""Copies of JSON files that a guess can be made from: only records, whose fields have names that DuckDB keeps apart."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from millrace.control.landing.formats.compression import UNPACKING_ERRORS, open_unpacked
from millrace.errors import BadInputError, first_line
from millrace.inference.delivered_files import LocalCopy

_MOST_BRACKETS = 900
"""The brackets that may be open at once: Python reads fewer than 1,000, and DuckDB 50,000."""

_STEPS = np.zeros(256, np.int64)
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1

_DECODER = json.JSONDecoder()
_NO_BLANK = re.compile(r"[^ \t\r\n]")

_NUMBERED = re.compile(r"(.+)_\d+")
"""DuckDB's name for a field that differs from an earlier one only in upper and lower case."""


@dataclass(frozen=True)
class Records:
    """The records of files.

    Attributes:
        files: copies of the files with nothing but their records.
        fields: column of the copies -> the field.
        any_case: whether a field has several spellings, each in records of its own: all are one column.
        unread: each line or file that holds no record, with the cause.
    """

    files: list[LocalCopy]
    fields: Mapping[str, str]
    any_case: bool
    unread: tuple[str, ...] = ()


@dataclass
class _Spellings:
    """How records write their fields.

    Attributes:
        of: field in small letters -> its spellings, in their order.
        is_exact: whether a record has two spellings of one field, which are two fields then.
        texts: the fields with objects in them whose names differ only in upper and lower case: no type has both.
    """

    of: dict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    is_exact: bool = False
    texts: set[str] = field(default_factory=set)
    _nested: dict[tuple[str, ...], str] = field(default_factory=dict)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take in the fields of a record."""
        self.is_exact |= len({key.lower() for key in record}) < len(record)
        for key, value in record.items():
            self.of[key.lower()][key] = None
            for path in _paths(value, key):
                if self._nested.setdefault(tuple(map(str.lower, path)), path[-1]) != path[-1]:
                    self.texts.add(key.lower())

    def fields(self) -> dict[str, tuple[str, ...]]:
        """Return column -> the spellings that it reads; no two columns differ only in upper and lower case."""
        groups = [tuple(spellings) for spellings in self.of.values()]
        if self.is_exact:
            groups = [(spelling,) for spellings in groups for spelling in spellings]
        return {f"{number}_{spellings[0]}": spellings for number, spellings in enumerate(groups)}


def may_hide_fields(columns: Collection[str]) -> bool:
    """Return whether columns that DuckDB found may be no fields: one for lines that are no records, or a numbered one.

    >>> [may_hide_fields(columns) for columns in (["json"], ["id", "ID_1"], ["id", "id_at", "line_1"])]
    [True, True, False]
    """
    names = {name.lower() for name in columns}
    numbered = (match[1].lower() for match in map(_NUMBERED.fullmatch, columns) if match)
    return names == {"json"} or any(name in names for name in numbered)


def may_be_deep(file: LocalCopy) -> bool:
    """Return whether a JSON file may be nested so deep that DuckDB ends the process; brackets in texts count."""
    depth, most, is_array = 0, 0, file.holds_array
    with file.path.open("rb") as stored, open_unpacked(file.path.name, stored) as content:
        try:
            for line in io.BufferedReader(cast(io.RawIOBase, content)):
                if line.count(b"[") + line.count(b"{") + depth > _MOST_BRACKETS or is_array:
                    depths = depth + np.cumsum(_STEPS[np.frombuffer(line, np.uint8)])
                    most, depth = max(most, int(depths.max())), int(depths[-1]) if is_array else 0
        except UNPACKING_ERRORS:
            return True  # the reader of the records names what is wrong
    return most > _MOST_BRACKETS


def records_of(files: Iterable[LocalCopy], folder: Path) -> Records:
    """Copy the records of JSON files, which are lines or an array, to a folder.

    If one record has two spellings of a field, they are two fields in all files. Else they are one, which the copies
    have once.

    Raises:
        BadInputError: no file has a record.
    """
    spellings, unread, readable = _Spellings(), list[str](), list[LocalCopy]()
    for file in files:
        wrong, found = list[str](), False
        try:
            for record in _records(file, wrong):
                spellings.add(record)
                found = True
        except (*UNPACKING_ERRORS, ValueError, RecursionError) as error:
            wrong.append(f"{file.name} does not read as json: {first_line(error)}")
            found = False
        if found:
            readable.append(file)
            unread += wrong
        else:
            unread.append(f"{(wrong or [file.name])[0]}; nothing in the file is a JSON object")
    if not readable:
        raise BadInputError(unread[0])
    fields = spellings.fields()
    columns = {spelling: column for column, group in fields.items() for spelling in group}
    copies = list[LocalCopy]()
    for number, file in enumerate(readable):
        copy = folder / f"records_{number}.json"
        with copy.open("w", encoding="utf-8") as target:
            for record in _records(file, []):
                target.write(f"{json.dumps(_named(record, columns, spellings.texts))}\n")
        copies.append(replace(file, path=copy))
    any_case = any(len(group) > 1 for group in fields.values())
    return Records(copies, {column: group[0] for column, group in fields.items()}, any_case, tuple(unread))


def _named(record: Mapping[str, Any], columns: Mapping[str, str], texts: Collection[str]) -> dict[str, Any]:
    """Return a record with the columns of the copy."""
    return {
        columns[key]: json.dumps(value) if key.lower() in texts and isinstance(value, dict | list) else value
        for key, value in record.items()
    }


def _paths(value: object, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of each field within a value; the elements of a list share theirs."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield (*path, key)
            yield from _paths(part, *path, key)
    elif isinstance(value, list):
        for part in value:
            yield from _paths(part, *path, "")


def _records(file: LocalCopy, unread: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the records of a file, and add each line or element that is none to `unread`.

    Raises:
        UNPACKING_ERRORS: the file cannot be unpacked.
        ValueError: it begins like an array and is none.
    """
    is_array = file.holds_array
    for number, found in _elements(file) if is_array else _lines(file):
        try:
            yield from _objects(found)
        except (ValueError, RecursionError) as error:
            # The place in the error of a decoder is one within the line.
            cause = error.msg if isinstance(error, json.JSONDecodeError) else first_line(error)
            unread.append(f"{file.name}, {'element' if is_array else 'line'} {number}: {cause}")


def _lines(file: LocalCopy) -> Iterator[tuple[int, bytes]]:
    with file.path.open("rb") as stored, open_unpacked(file.path.name, stored) as content:
        yield from (
            (number, line)
            for number, line in enumerate(io.BufferedReader(cast(io.RawIOBase, content)), 1)
            if line.strip()
        )


def _elements(file: LocalCopy) -> Iterator[tuple[int, object]]:
    with file.path.open("rb") as stored, open_unpacked(file.path.name, stored) as content:
        (elements,) = _values(io.TextIOWrapper(content, encoding="utf-8-sig").read())
        yield from enumerate(elements, 1)


def _objects(found: object) -> list[dict[str, Any]]:
    """Return the records of an element of an array, or of the text of a line: one or several objects.

    Of a field that is there several times the last value counts, as it does where a run reads it.
    """
    values = list(_values(found.decode())) if isinstance(found, bytes) else [found]
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) < len(values):
        raise ValueError("no JSON object")
    return objects


def _values(text: str) -> Iterator[Any]:
    at = 0
    try:
        while start := _NO_BLANK.search(text, at):
            value, at = _DECODER.raw_decode(text, start.start())
            yield value
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
