"""The fields in the `_rescued` column of a bronze table: in how many rows each is, and some of its values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.log.table_queries import query
from millrace.control.quarantine.stored_rows import QuarantinedRow

RESCUED = "_rescued"
MAX_SAMPLES = 5
_WIDTH = 40
_FIELDS = f"SELECT {RESCUED}, count(*) AS rows FROM stored WHERE {RESCUED} IS NOT NULL GROUP BY {RESCUED}"


@dataclass(frozen=True)
class RescuedField:
    """A field without a declared column: the number of rows that have it, and its most common values as JSON, cut."""

    rows: int = 0
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = counted(self.rows, "row")
        return f"{rows}, such as {', '.join(self.samples)}" if self.samples else rows


def rescued_fields(table: LakePath, names: Collection[str]) -> dict[str, RescuedField]:
    """Return the fields that the newest version of a bronze table has rescued, by name; read nothing else of it."""
    values = {name: Counter[str]() for name in names}
    rows = query(open_table(table), _FIELDS) if names and is_table(table) else []
    for row in rows:
        fields = json.loads(row[RESCUED])
        for name in values.keys() & fields.keys():
            value = json.dumps(fields[name], ensure_ascii=False)
            values[name][value if len(value) <= _WIDTH else f"{value[: _WIDTH - 3]}..."] += row["rows"]
    return {
        name: RescuedField(counts.total(), tuple(value for value, _ in counts.most_common(MAX_SAMPLES)))
        for name, counts in values.items()
    }


def rescued_of(row: QuarantinedRow) -> str:
    """Return the values of a refused row that fit no column of its source, as JSON; empty if its record has them."""
    received, record = (_fields_of(text) for text in (row.received, row.record))
    return "" if RESCUED in record else str(received.get(RESCUED) or "")


def _fields_of(text: str) -> dict[str, Any]:
    try:
        record = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
