"""Readers of JSON lines, and of an object that another system may have written.

Only a line feed ends a line. `str.splitlines` also splits at U+0085, U+2028 and six further characters, which a JSON
text may contain unescaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class JsonLine:
    """A line that is not blank: its number (from 1), its text, and its JSON value."""

    number: int
    text: str
    value: Any


def json_lines(text: str) -> Iterator[JsonLine]:
    r"""Yield the lines of a text.

    >>> [line.value for line in json_lines('{"name": "Z\u0085rich"}\n\n7\n')] == [{"name": "Z\u0085rich"}, 7]
    True

    Raises:
        ValueError: a line is no JSON; the message names it.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield JsonLine(number, line, json.loads(line))
            except json.JSONDecodeError as error:
                raise ValueError(f"line {number} is no JSON: {error.msg} at column {error.colno}") from error


def json_object(text: str | bytes | None) -> dict[str, Any]:
    """Return a JSON object; an empty one if the text is something else, or damaged."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
