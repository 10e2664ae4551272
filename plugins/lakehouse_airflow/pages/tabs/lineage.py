"""The tab Lineage: where do the rows come from, who gets them, and how far has each table read?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_airflow.pages.tab import ShownTable, Tab
from millrace.overview.lineage.tables import downstream, source_reads, upstream


def _values(shown: ShownTable) -> Mapping[str, Any]:
    tables = {each.table: each for each in shown.all_tables()}
    table = shown.overview
    return {
        "upstream": upstream(table.table, tables),
        "downstream": downstream(table.table, tables),
        "reads": source_reads(table, tables),
    }


TAB = Tab("lineage", "Lineage", _values)
