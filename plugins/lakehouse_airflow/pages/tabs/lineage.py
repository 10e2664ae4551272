"""The tab Lineage: where do the rows come from, who gets them, and how far has each table read?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.contracts.spec.table_spec import AnySpec, GoldSpec
from include.overview.lineage import downstream, source_reads, upstream
from include.specs.invalid_spec import InvalidSpec
from lakehouse_airflow.pages.tab import ShownTable, Tab


def _values(shown: ShownTable) -> Mapping[str, Any]:
    tables = {each.table: each for each in shown.all_tables()}
    table, spec = shown.overview, shown.overview.spec
    return {
        "upstream": upstream(table.table, tables),
        "downstream": downstream(table.table, tables),
        "reads": source_reads(table, tables),
        "origins": {} if isinstance(spec, InvalidSpec) else _origins(spec),
    }


def _origins(spec: AnySpec) -> dict[str, list[str]]:
    """Return column -> the columns of its sources, such as `silver.orders.day`; in bronze the fields of its records."""
    # Imported here: it loads a parser of SQL.
    from lakehouse_airflow.lineage.columns import origins_of_columns

    names = {alias: source.table for alias, source in spec.sources.items()} if isinstance(spec, GoldSpec) else {}
    only = spec.source_tables[0] if spec.source_tables else ""
    origins = origins_of_columns(spec, {})
    return {
        column: list(dict.fromkeys(".".join(filter(None, (names.get(each.source, only), each.field))) for each in of))
        for column, of in origins.items()
    }


TAB = Tab("lineage", "Lineage", _values)
