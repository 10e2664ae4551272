"""JSON lines: the one reader of them.

A line ends with a line feed and nowhere else: `str.splitlines` cuts at U+0085, U+2028 and six further characters too,
which JSON lets stand as they are within a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class JsonLine:
    """One line that is not blank.

    Attributes:
        number: which line of the text it is, from 1 on.
        text: the line as it stands.
        value: what it says.
    """

    number: int
    text: str
    value: Any


def json_lines(text: str) -> Iterator[JsonLine]:
    r"""Read the lines of a text.

    >>> [line.value for line in json_lines('{"name": "Z\u0085rich"}\n\n7\n')] == [{"name": "Z\u0085rich"}, 7]
    True

    Raises:
        ValueError: a line is no JSON; the message names it.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield JsonLine(number, line, _value(line, number))


def _value(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"line {number} is no JSON: {error.msg} at column {error.colno}") from error
