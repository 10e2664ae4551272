"""The check of JSON files that are one array of records, before Spark reads them."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TextIO

from millrace.contracts.spec.bronze_sources import FileLimits
from millrace.control.landing.formats.record_sizes import too_large

MAX_ARRAY_CHARS = 64 << 20
"""The most characters of an array that one Spark task parses: it needs eight times as much memory for that."""

_START = 1 << 12
_CHUNK = 1 << 20
_BLANKS = re.compile(r"[ \t\n\r]*")
_MAX_TOKEN = 16
"""Tokens other than strings and numbers are no longer, if the end of a chunk cuts them: `-Infinity`, an escape."""

# Digits are only counted: the conversion to numbers takes time, and fails beyond some thousand.
_DECODER = json.JSONDecoder(parse_int=len, parse_float=len)


class ArrayTooLargeError(ValueError):
    """Raised when an array, or a record of it, is too large for one task."""


class ArrayText:
    """Moves through the text of a file, with no more of it in memory than one element needs."""

    def __init__(self, stream: TextIO, limits: FileLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._text = ""
        self._at = 0
        self._read = 0

    def next_mark(self) -> str:
        """Move to the next character that is not blank, and return it; empty at the end of the file."""
        while True:
            self._at = _BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_on():
                return ""

    def skip_mark(self) -> None:
        """Move past the mark."""
        self._at += 1

    def skip_value(self) -> None:
        """Move past one JSON value.

        Raises:
            ValueError: there is none, or it is over the limit.
        """
        while True:
            try:
                _, end = _DECODER.raw_decode(self._text, self._at)
                self._require_small(end - self._at)
            except json.JSONDecodeError as error:
                is_unterminated = error.msg.startswith("Unterminated")
                if is_unterminated or error.pos + _MAX_TOKEN >= len(self._text):
                    self._require_small(len(self._text) - self._at)
                    if self._read_on():
                        continue
                is_cut = is_unterminated or error.pos >= len(self._text)
                raise ValueError("the file ends within it" if is_cut else error.msg) from error
            # A number near the end of the chunk may continue after it.
            if end + _MAX_TOKEN < len(self._text) or not self._read_on():
                self._at = end
                return

    def _require_small(self, size: int) -> None:
        if size > self._limits.record:
            raise ArrayTooLargeError(str(too_large(self._limits)))

    def _read_on(self) -> bool:
        """Read on, and return whether there was more; double the text, so that a long value is not parsed too often."""
        rest = self._text[self._at :]
        more = self._stream.read(max(_CHUNK, len(rest)))
        if not more:
            return False
        self._text, self._at, self._read = rest + more, 0, self._read + len(more)
        if self._read > MAX_ARRAY_CHARS:
            raise ArrayTooLargeError(
                f"an array of more than {MAX_ARRAY_CHARS >> 20} MiB, which is too large for a task; have it delivered "
                "as JSON lines (`jq -c '.[]'` makes them), or in several files"
            )
        return True


def is_array(stream: TextIO) -> bool:
    """Return whether the text of a JSON file is one array, not lines, by its first character that is not blank."""
    starts = (piece.strip()[:1] for piece in iter(partial(stream.read, _START), ""))
    return next(filter(None, starts), "") == "["


def require_array(stream: TextIO, limits: FileLimits) -> None:
    """Check that the text, which begins with `[`, is one complete JSON array.

    Raises:
        ValueError: it is not, and the message names the element; or a record is over the limit.
    """
    text, number = ArrayText(stream, limits), 1
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
        if (mark := text.next_mark()) != "]":
            raise ValueError("the file ends within the array" if not mark else f"then comes {mark!r} instead of , or ]")
        text.skip_mark()
        if text.next_mark():
            raise ValueError("more text follows the array; it begins with [, so it is read as one array, not as lines")
    except ArrayTooLargeError:
        raise
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 text ({error.reason}) within a JSON array; have it delivered again") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a sound JSON array (element {number}: {error}); have it delivered again") from error
