"""Restricted columns: values that are shown nowhere but in the tables themselves and their quarantine."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from millrace.contracts.job.findings import INVALID_VALUE

RESTRICTED = "(restricted)"
"""What stands in place of a value of a restricted column, also of null: neither a hash nor a length tells anything."""

_BROKEN = "_corrupt_record"
_WITH_VALUES = frozenset({"_rescued", "_key", "_headers", _BROKEN, "_sequence", "_source_hash", "_content_hash"})
"""The columns of Millrace's own that hold what a source has delivered, or values of other columns, or their hash."""

_MARKED = "\0{}\0"
_NUMBER = re.compile(r'"\\u0000([^"\\]*)\\u0000"')
"""A number that was read as a marked text, as JSON has it: a number of Python would lose digits."""


@dataclass(frozen=True)
class RestrictedColumns:
    """The restricted columns of a table; `name in columns` asks for one, in any case.

    Attributes:
        names: those that its spec declares, in small letters.
        declared: all columns that the spec declares, in small letters.
        others: whether a column that the spec does not declare is restricted as well, because nobody has said what it
            holds: those of an earlier spec, fields without a column, and what a source delivered besides.
    """

    names: frozenset[str] = frozenset()
    declared: frozenset[str] = frozenset()
    others: bool = False

    def __bool__(self) -> bool:
        return self.others or bool(self.names)

    def __contains__(self, name: object) -> bool:
        lower = str(name).lower()
        if lower in self.declared:
            return lower in self.names
        return self.others and (not lower.startswith("_") or lower in _WITH_VALUES)

    def __or__(self, other: RestrictedColumns) -> RestrictedColumns:
        if EVERYTHING_RESTRICTED in (self, other):
            return EVERYTHING_RESTRICTED
        return RestrictedColumns(self.names | other.names, self.declared | other.declared, self.others or other.others)

    def before(self, sources: RestrictedColumns) -> RestrictedColumns:
        """Return the restricted columns of rows that have columns of a source, too; its own declarations come first."""
        if EVERYTHING_RESTRICTED in (self, sources):
            return EVERYTHING_RESTRICTED
        names = self.names | (sources.names - self.declared)
        return RestrictedColumns(names, self.declared | sources.declared, self.others or sources.others)

    def shown(self, name: str, value: Any) -> Any:
        """Return a value of a column, or `RESTRICTED`.

        >>> columns = RestrictedColumns(frozenset({"ssn"}), frozenset({"ssn", "city"}), others=True)
        >>> [columns.shown(name, "x") for name in ("SSN", "city", "_rescued", "_batch_seq")]
        ['(restricted)', 'x', '(restricted)', 'x']
        """
        return RESTRICTED if name in self else value

    def shown_record(self, text: str) -> str:
        """Return a record, which is JSON, with `RESTRICTED` in place of values; all of it for a text without columns.

        Numbers that are shown keep every digit.

        >>> columns = RestrictedColumns(frozenset({"ssn"}), frozenset({"ssn", "city"}), others=True)
        >>> columns.shown_record('{"ssn":"12","city":"x"}'), columns.shown_record('{"ssn":"12')
        ('{"ssn":"(restricted)","city":"x"}', '(restricted)')
        >>> columns.shown_record('{"ssn":1.10,"city":[12345678901234567890.10,7]}')
        '{"ssn":"(restricted)","city":[12345678901234567890.10,7]}'
        >>> columns.shown_record('{"city":"12","_corrupt_record":"12,x"}')
        '{"city":"(restricted)","_corrupt_record":"(restricted)"}'
        """
        if not self or not text:
            return text
        try:
            record = json.loads(text, parse_float=_MARKED.format, parse_int=_MARKED.format)
        except (ValueError, RecursionError):
            return RESTRICTED
        if not isinstance(record, dict):
            return RESTRICTED
        # In a record that could not be parsed, a value may stand in another column than its own.
        is_broken = record.get(_BROKEN) is not None
        values = {name: RESTRICTED if is_broken else self.shown(name, value) for name, value in record.items()}
        return _NUMBER.sub(r"\1", json.dumps(values, ensure_ascii=False, separators=(",", ":")))

    def shown_reason(self, reason: str) -> str:
        """Return the reason of a refused row with `RESTRICTED` in place of the value at its end.

        >>> columns = RestrictedColumns(frozenset({"ssn"}), frozenset({"ssn", "city"}), others=True)
        >>> columns.shown_reason("value does not fit its type: ssn is no int: 12: or so")
        'value does not fit its type: ssn is no int: (restricted)'
        """
        rule, _, rest = reason.partition(": ")
        cause, has_value, _ = rest.partition(": ")
        is_hidden = rule == INVALID_VALUE and has_value and cause.partition(" is no ")[0] in self
        return f"{rule}: {cause}: {RESTRICTED}" if is_hidden else reason


NOTHING_RESTRICTED = RestrictedColumns()
"""Of a table that shows all of its values."""

EVERYTHING_RESTRICTED = RestrictedColumns(others=True)
"""Of a table about which no sound spec says anything."""
