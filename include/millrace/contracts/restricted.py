"""Restricted columns: values that are shown nowhere but in the tables themselves and their quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

RESTRICTED = "(restricted)"
"""What stands in place of a value of a restricted column, also of null: neither a hash nor a length tells anything."""

_OF_SOURCES = frozenset({"_rescued", "_key", "_headers", "_corrupt_record"})
"""The columns of Millrace's own that hold what a source has delivered."""


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
        return self.others and (not lower.startswith("_") or lower in _OF_SOURCES)

    def __or__(self, other: RestrictedColumns) -> RestrictedColumns:
        return RestrictedColumns(self.names | other.names, self.declared | other.declared, self.others or other.others)

    def shown(self, name: str, value: Any) -> Any:
        """Return a value of a column, or `RESTRICTED`.

        >>> columns = RestrictedColumns(frozenset({"ssn"}), frozenset({"ssn", "city"}), others=True)
        >>> [columns.shown(name, "x") for name in ("SSN", "city", "_rescued", "_batch_seq")]
        ['(restricted)', 'x', '(restricted)', 'x']
        """
        return RESTRICTED if name in self else value


NOTHING_RESTRICTED = RestrictedColumns()
"""Of a table that shows all of its values."""
