"""What a bronze table keeps in `_rescued`: for how many rows a field is there, and some of its values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from include.contracts.lake_path import LakePath
from include.control.log.stored_tables import is_table, open_table
from include.control.log.table_queries import query

RESCUED = "_rescued"
MOST_SAMPLES = 5
_WIDTH = 40
_KEPT = f"SELECT {RESCUED}, count(*) AS rows FROM stored WHERE {RESCUED} IS NOT NULL GROUP BY {RESCUED}"


@dataclass(frozen=True)
class RescuedField:
    """A field that no column is declared for.

    Attributes:
        rows: how many rows have it.
        samples: its commonest values as JSON, each cut to a few characters.
    """

    rows: int = 0
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = "1 row" if self.rows == 1 else f"{self.rows:,} rows"
        return f"{rows}, such as {', '.join(self.samples)}" if self.samples else rows


def rescued_fields(table: LakePath, names: Collection[str]) -> dict[str, RescuedField]:
    """name -> what the newest version of the table keeps of it; nothing else of the table is read.

    Args:
        table: the folder of a bronze table.
        names: the fields.
    """
    values = {name: Counter[str]() for name in names}
    kept = query(open_table(table), _KEPT) if names and is_table(table) else []
    for row in kept:
        fields = json.loads(row[RESCUED])
        for name in values.keys() & fields.keys():
            values[name][_cut(json.dumps(fields[name], ensure_ascii=False))] += row["rows"]
    return {
        name: RescuedField(of_name.total(), tuple(value for value, _ in of_name.most_common(MOST_SAMPLES)))
        for name, of_name in values.items()
    }


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
