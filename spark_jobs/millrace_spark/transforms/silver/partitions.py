"""The partitions of a silver table that its sources share out (ADR 57)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.errors import BadInputError
from millrace_spark.transforms.sql_texts import sql_text


def is_own(spec: SilverSpec) -> Column:
    """Return true for a row of the partitions that the spec's sources may deliver; without partitions for every row."""
    return F.expr(own_partitions(spec)) if spec.concurrent_by else F.lit(True)


def own_partitions(spec: SilverSpec, alias: str = "") -> str:
    """Return the same as a condition in SQL; empty for a spec without `concurrent_by`.

    Delta compares it with the partitions that another commit has changed: two merges of different partitions do not
    conflict.

    >>> from millrace.contracts.spec.table_spec import parse_spec
    >>> sources = [{"table": "bronze.eu", "partitions": ["de", "fr"]}, {"table": "bronze.us", "partitions": ["us"]}]
    >>> spec = parse_spec({"table": "silver.orders", "sources": sources, "keys": ["country", "id"],
    ...     "columns": {"country": {}, "id": {}}, "partitioned_by": ["country"], "concurrent_by": "country"})
    >>> own_partitions(spec.of_stream("bronze.eu"), "t.")
    "t.`country` IN ('de', 'fr')"
    """
    if not spec.concurrent_by:
        return ""
    values = ", ".join(str(value) if isinstance(value, int) else sql_text(value) for value in spec.partitions)
    return f"{alias}`{spec.concurrent_by}` IN ({values})"


def foreign_partitions(spec: SilverSpec, is_accepted: Column) -> tuple[Column, ...]:
    """Return the aggregates of accepted rows of other partitions: `_foreign`, their number, and `_foreign_value`, one.

    None for a spec without `concurrent_by`.
    """
    if not spec.concurrent_by:
        return ()
    is_foreign = is_accepted & ~is_own(spec)
    value = F.min(F.when(is_foreign, F.col(spec.concurrent_by).cast("string")))
    return F.count(F.when(is_foreign, 1)).alias("_foreign"), value.alias("_foreign_value")


def require_own_partitions(spec: SilverSpec, totals: Mapping[str, Any], restricted: RestrictedColumns) -> None:
    """Require, by `foreign_partitions`, that a batch stays in the partitions of its sources.

    Raises:
        BadInputError: it has rows of other partitions.
    """
    if not (count := totals.get("_foreign")):
        return
    source, column = ", ".join(spec.source_tables), str(spec.concurrent_by)
    value = restricted.shown(column, totals["_foreign_value"])
    raise BadInputError(
        f"{spec.table}: {counted(count, 'row')} of {source} {'has' if count == 1 else 'have'} a {column} that is none "
        f"of its partitions ({', '.join(map(str, spec.partitions))}), such as {value}",
        f"Nothing of {source} was written. Correct these rows at their source; or list the value under its "
        "`partitions`, where no other source has it. If a change of the spec has caused this, put the spec back first.",
    )
