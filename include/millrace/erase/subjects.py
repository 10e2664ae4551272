"""The subjects of a search, and the patterns that find their values in texts.

A subject is a person, or anything else, that the values of a `subject_keys` column identify.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import quote

from millrace.errors import BadInputError

MOST_BYTES = 1024
"""The most bytes of a value."""

_MOST_SUBJECTS = 1000
_TOO_SHORT = 6
_STATISTICS = 32
"""The characters of a text that Delta and Millrace keep in the statistics of a data file."""


@dataclass(frozen=True)
class Subjects:
    """Subjects of one kind.

    Attributes:
        kind: the kind, as `subject_keys` names it.
        values: their keys, as text.
    """

    kind: str
    values: tuple[str, ...]

    @property
    def short(self) -> tuple[str, ...]:
        """The values that any text may hold by chance, such as 17: they are found in columns and fields alone."""
        return tuple(value for value in self.values if value.isdigit() and len(value) < _TOO_SHORT)

    def pattern(self, keys: Collection[str]) -> str:
        """Return a regular expression, for Python and RE2, of texts that name one of the subjects.

        Args:
            keys: the fields whose values count even if they are short, as in `"customer_id":17`.
        """
        short = self.short
        words = {form for value in self.values if value not in short for form in _forms(value)}
        parts = [rf"(?:^|\W)(?:{_any(words)})(?:\W|$)"] if words else []
        if short and keys:
            names = _any(json.dumps(key, ensure_ascii=False) for key in keys)
            parts.append(rf'(?:{names})\s{{0,8}}:\s{{0,8}}"?(?:{_any(short)})(?:\W|$)')
        return "|".join(parts) or r"[^\s\S]"

    def in_path(self, path: str, keys: Collection[str]) -> bool:
        """Whether the path of a data file, with a folder `key=value` for each partition, is that of one of them."""
        folders = {f"{key}={quote(value, safe='')}" for key in keys for value in self.values}
        return not folders.isdisjoint(path.split("/"))


def read_subjects(kind: str, lines: Iterable[str]) -> Subjects:
    """Return the subjects that a file names, one in each line.

    Raises:
        BadInputError: the file names none, or too many, or one that is too long.
    """
    values = tuple(dict.fromkeys(value for line in lines if (value := line.rstrip("\r\n"))))
    if not values:
        raise BadInputError("no subject was named", "Write one key into each line, as the tables have it.")
    if len(values) > _MOST_SUBJECTS:
        way_out = "Name fewer at once: each file is compared with each of them."
        raise BadInputError(f"{len(values):,} subjects are more than {_MOST_SUBJECTS:,}", way_out)
    if long := [number for number, value in enumerate(values, 1) if len(value.encode()) > MOST_BYTES]:
        raise BadInputError(f"subject {long[0]} has more than {MOST_BYTES:,} bytes", "Write its key alone.")
    return Subjects(kind, values)


def _forms(value: str) -> set[str]:
    """Return a value as tables, JSON, CSV, addresses and pages write it, and as statistics cut it off."""
    whole = {value, value[:_STATISTICS]}
    written = {json.dumps(each, ensure_ascii=is_ascii)[1:-1] for each in whole for is_ascii in (True, False)}
    return whole | written | {value.replace('"', '""'), quote(value, safe=""), html.escape(value)}


def _any(texts: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(texts)))
