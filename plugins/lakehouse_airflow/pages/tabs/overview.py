"""The tab Overview: what is in the table, may I use it, and how do I read the certified version?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakehouse_airflow.pages.tab import ShownTable, Tab
from millrace.contracts.lake_path import LakePath, S3Path
from millrace.contracts.restricted import NOTHING_RESTRICTED
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.views.scripts import View
from millrace.overview.described_columns import described_columns, rules_of_table
from millrace.overview.lineage.restricted import Restrictions
from millrace.settings import Settings
from millrace.specs.invalid_spec import InvalidSpec


def _values(shown: ShownTable) -> Mapping[str, Any]:
    table, specs = shown.overview.table, shown.reader.catalog().specs.values()
    spec, certified, last = shown.overview.spec, shown.overview.certified, shown.overview.last
    sound = None if isinstance(spec, InvalidSpec) else spec
    paths = Settings().absolute().paths
    restricted = Restrictions(shown.reader.catalog().specs).of(table) if sound else NOTHING_RESTRICTED
    return {
        "spec": sound,
        "columns": described_columns(sound) if sound else [],
        "restricted": restricted,
        "table_rules": rules_of_table(sound) if sound else [],
        "landing": _landing(sound),
        "runs": shown.existing_runs([last] if last else []),
        "readers": [each.table for each in specs if table in each.upstream_tables],
        "queries": {} if certified is None else certified_queries(table, paths.table(table), certified),
    }


def _landing(spec: AnySpec | None) -> str:
    """Return from where a bronze table is loaded; empty for all others."""
    if not isinstance(spec, BronzeSpec):
        return ""
    return spec.source.label if spec.reads_kafka else f"landing files of {spec.landing_source.landing}/"


def certified_queries(table: str, path: LakePath, version: int) -> dict[str, str]:
    """Return tool -> what to write: first what finds the certified version by itself, then what reads this version.

    >>> from pathlib import Path
    >>> certified_queries("silver.flights", Path("/lake/silver/flights"), 7)["DuckDB"]
    "SELECT * FROM delta_scan('/lake/silver/flights', version = 7);"
    """
    address = str(path)
    spark = address.replace("s3://", "s3a://", 1) if isinstance(path, S3Path) else address
    return {
        "lakehouse": f'lakehouse query "FROM {table} LIMIT 20"',
        "Python": f'from millrace import certified; certified("{table}").arrow()',
        "DuckDB": f"SELECT * FROM delta_scan('{address}', version = {version});",
        "Spark": f'spark.read.format("delta").option("versionAsOf", {version}).load("{spark}")',
        "delta-rs": f'DeltaTable("{address}", version={version}).to_pyarrow_table()',
        "Trino": f"{View(table, address, version).trino_query};",
    }


TAB = Tab("overview", "Overview", _values)
