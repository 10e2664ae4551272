"""The columns of a table, as far as its spec lists them, and which of them are dates or timestamps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.sql.clock_words import is_time
from millrace.sql.expression import expression_of
from millrace.sql.query.select_query import query_of

_FIELD = re.compile(r"(\w+)\s*:\s*(?:date|timestamp)")
_OF_ROWS = ("_interval_start", "_ingested_at")
_OF_MESSAGES = frozenset(("timestamp",))


def row_columns(spec: AnySpec) -> tuple[str, ...] | None:
    """Return the columns of a row that a row rule sees, before the row is stored; None as `table_columns`."""
    return tuple(spec.columns) if isinstance(spec, SilverSpec) else table_columns(spec)


def table_columns(spec: AnySpec | None) -> tuple[str, ...] | None:
    """Return the columns of a table; None if the spec does not list them all, or is wrong."""
    match spec:
        case BronzeSpec():
            return None if spec.on_drift == "evolve" else tuple(spec.columns)
        case SilverSpec():
            return spec.stored_columns
        case GoldSpec():
            return (*spec.group_by, *spec.measures, *spec.query_columns)
        case None:
            return None


@dataclass(frozen=True)
class TimeColumns:
    """The columns of tables, and their fields, that are known to be dates or timestamps.

    Attributes:
        specs: all specs by table.
    """

    specs: Mapping[str, AnySpec]
    _known: dict[str, frozenset[str]] = field(default_factory=dict, repr=False)

    def of(self, table: str) -> frozenset[str]:
        """Return those of a table; it is looked at once, however many tables read it."""
        if table not in self._known:
            self._known[table] = frozenset()  # of tables in a circle, which another check refuses
            self._known[table] = self._find(self.specs.get(table))
        return self._known[table]

    def of_sources(self, spec: AnySpec) -> frozenset[str]:
        """Return those of all sources of a table; for bronze, those of a message."""
        if isinstance(spec, BronzeSpec):
            return _OF_MESSAGES
        return frozenset().union(*map(self.of, spec.source_tables))

    def _find(self, spec: AnySpec | None) -> frozenset[str]:
        if isinstance(spec, BronzeSpec | SilverSpec):
            types = {name: column.type for name, column in spec.columns.items()}
            fields = {name for kind in types.values() for name in _FIELD.findall(kind)}
            types |= dict.fromkeys(_OF_ROWS, "timestamp")
            if isinstance(spec, SilverSpec) and not spec.source_priority and len(spec.sequence_by) <= 1:
                first, *_ = spec.sequence_by or _OF_ROWS
                # A wrong spec may name a column that it lacks; another check says so.
                types |= dict.fromkeys(spec.period_columns, types.get(first, ""))
            return frozenset({*fields, *(name for name, kind in types.items() if kind in TIMES)})
        if not isinstance(spec, GoldSpec):
            return frozenset()
        times = self.of_sources(spec)
        trees = {name: expression_of(text).tree for name, text in (*spec.group_by.items(), *spec.measures.items())}
        query = query_of(spec.query or "").tree
        trees |= dict(zip(spec.query_columns, query.selects, strict=False)) if query else {}
        return frozenset(name for name, tree in trees.items() if is_time(tree, times))
