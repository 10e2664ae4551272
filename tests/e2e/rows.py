"""The rows of a domain's tables, for comparing two lakehouses that must hold the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from include.catalog import load_catalog
from include.contracts.spec.table_spec import BronzeSpec
from include.paths import LakehousePaths

Rows = Counter[tuple[tuple[str, Any], ...]]
"""Rows as (column, value) pairs, each with the number of times that it occurs."""

OF_BRONZE = ("_rescued", "_source_file", "_interval_start")
"""Columns of bronze's own that do not depend on which run loaded a row, nor on when."""


def rows_of_domain(domain: str, specs: Path, root: Path) -> dict[str, Rows]:
    """Table -> the rows of its newest version, without the columns that name a batch."""
    tables = load_catalog(specs).of_domain(domain)
    return {
        spec.table: _rows(LakehousePaths(root).table(spec.table), OF_BRONZE if isinstance(spec, BronzeSpec) else ())
        for spec in tables
    }


def _rows(table: Path, own_columns: tuple[str, ...]) -> Rows:
    found = DeltaTable(str(table)).to_pyarrow_table()
    columns = [name for name in found.column_names if not name.startswith("_") or name in own_columns]
    return Counter(tuple(row.items()) for row in found.select(columns).to_pylist())
