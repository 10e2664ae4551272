"""Where a row of a silver table came from: the source table, and the place in it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.change_data import SOURCE_TABLE

_BETWEEN = ": "
"""What stands between a source and the place in it."""


def with_source_table(bronze: DataFrame, table: str | None) -> DataFrame:
    """Add `SOURCE_TABLE` to the rows of a source; None for the only source of its table adds nothing."""
    return bronze if table is None else bronze.withColumn(SOURCE_TABLE, F.lit(table))


def place_in(table: str | None, place: str) -> str:
    """Return a place, such as a landing file, as `_source` names it.

    >>> place_in(None, "orders/a.json"), place_in("bronze.orders", "orders/a.json")
    ('orders/a.json', 'bronze.orders: orders/a.json')
    """
    return place if table is None else f"{table}{_BETWEEN}{place}"


def origin(bronze: DataFrame) -> tuple[Column, Column, Column]:
    """Return where a row came from, in the quarantine's columns: `_source`, `_position` and `_interval_start`."""
    if "_offset" in bronze.columns:
        place = F.concat_ws("/", "_topic", "_partition"), F.col("_offset")
    else:
        place = F.col("_source_file"), F.lit(None).cast("bigint")
    source = place[0]
    if SOURCE_TABLE in bronze.columns:
        source = F.concat_ws(_BETWEEN, F.col(SOURCE_TABLE), source)
    return source.alias("_source"), place[1].alias("_position"), F.col("_interval_start")
