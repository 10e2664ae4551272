"""JSON files that are one array of records: whether it is whole, before Spark meets it."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TextIO

LARGEST = 64 << 20
"""Characters of an array that one task of Spark takes apart: it needs eight times as much memory for that."""

_START = 1 << 12
_CHUNK = 1 << 20
_BLANKS = re.compile(r"[ \t\n\r]*")
_LONGEST_TOKEN = 16
"""What is cut off by the end of a chunk, other than a string, is no longer: `-Infinity`, an escape, a number's sign."""

# Digits are only counted: making numbers of them costs time, and fails beyond some thousand.
_DECODER = json.JSONDecoder(parse_int=len, parse_float=len)


class ArrayTooLargeError(ValueError):
    """Raised when an array is too large to be taken apart by one task."""


class ArrayText:
    """Walks through the text of a file, with no more of it in memory than one element needs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._text = ""
        self._at = 0
        self._read = 0

    def next_mark(self) -> str:
        """The next character that is not blank, which is left where it is; empty at the end of the file."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def skip_mark(self) -> None:
        """Go past the mark that was looked at."""
        self._at += 1

    def skip_value(self) -> None:
        """Go past one JSON value.

        Raises:
            ValueError: there is none.
        """
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._may_be_cut(error) and self._read_on():
                    continue
                is_cut = error.pos >= len(self._text) or error.msg.startswith("Unterminated")
                raise ValueError("the file ends within it" if is_cut else error.msg) from error
            # A number near the end of what was read may go on behind it.
            if end + _LONGEST_TOKEN < len(self._text) or not self._read_on():
                self._at = end
                return

    def _may_be_cut(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated") or error.pos + _LONGEST_TOKEN >= len(self._text)

    def _read_on(self) -> bool:
        """Whether there was more; as much again as is at hand, so that a long value is not gone through too often."""
        rest = self._text[self._at :]
        more = self._stream.read(max(_CHUNK, len(rest)))
        if not more:
            return False
        self._text, self._at, self._read = rest + more, 0, self._read + len(more)
        if self._read > LARGEST:
            raise ArrayTooLargeError(
                f"an array of more than {LARGEST >> 20} MiB, which no task takes apart; have it delivered as JSON "
                "lines (`jq -c '.[]'` makes them), or in several files"
            )
        return True


def is_array(stream: TextIO) -> bool:
    """Whether the text of a JSON file is one array, not lines: its first character that is not blank says so."""
    starts = (piece.strip()[:1] for piece in iter(partial(stream.read, _START), ""))
    return next(filter(None, starts), "") == "["


def require_array(stream: TextIO) -> None:
    """Whether the text, which begins with `[`, is one JSON array to its end.

    Raises:
        ValueError: it is not; the message says where it breaks.
    """
    text, number = ArrayText(stream), 1
    try:
        text.next_mark()
        text.skip_mark()
        while not (number == 1 and text.next_mark() == "]"):
            text.next_mark()
            text.skip_value()
            if text.next_mark() != ",":
                break
            text.skip_mark()
            number += 1
        _require_end(text)
    except ArrayTooLargeError:
        raise
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text ({error.reason}) within a JSON array; have it delivered again") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a sound JSON array (element {number}: {error}); have it delivered again") from error


def _require_end(text: ArrayText) -> None:
    mark = text.next_mark()
    if mark != "]":
        raise ValueError("the file ends within the array" if not mark else f"then comes {mark!r} instead of , or ]")
    text.skip_mark()
    if text.next_mark():
        raise ValueError("more text follows the array; it begins with [, so it is read as one array, not as lines")
