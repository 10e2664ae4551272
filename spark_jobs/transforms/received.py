"""Rows as a table's writer receives them, as JSON: exact enough to be received once more, and to be known by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from spark_jobs.transforms.records import CORRUPT, RESCUED

RECEIVED = "_received"
"""A row as JSON."""

ROW_ID = "_row_id"
"""The id of the quarantined row that a row is tried from."""

FIXED = "_is_fixed"
"""True for a row in which somebody has mended something."""

RECEIVED_FRAME = f"{ROW_ID} string, {RECEIVED} string, {FIXED} boolean"
"""The columns of rows that are to be received once more, before they are parsed."""

_EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own format leaves microseconds out."""

_READ = {**_EXACT, "columnNameOfCorruptRecord": "_unparsed"}
"""By its own name of it, Spark would fill `_corrupt_record` itself."""

_OF_THE_MOMENT = ("_ingested_at", "_batch_token")
"""Columns of a bronze row that say nothing of what it is."""


def is_received(name: str) -> bool:
    """Whether a column of a bronze table is part of what silver receives."""
    return name not in _OF_THE_MOMENT


def as_received(columns: Iterable[str]) -> Column:
    """The columns as JSON, in the order of their names; nulls are left out, so that a new column changes nothing."""
    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in sorted(columns))), _EXACT)


def parsed(rows: DataFrame, schema: StructType, *more: str) -> DataFrame:
    """Rows from `RECEIVED`: the columns of `schema`, `ROW_ID`, `FIXED`, and `more` of the frame's own."""
    fields = F.from_json(RECEIVED, schema, _READ)
    return rows.withColumn("_fields", fields).select(ROW_ID, FIXED, *more, "_fields.*")


def values_of(text: Column, schema: StructType) -> Column:
    """A struct of the values that a JSON object states of the columns of `schema`."""
    return F.from_json(text, schema, _READ)


def mendable(schema: StructType) -> list[str]:
    """The columns that people may change: what the source said, not where and when it came from."""
    return [name for name in schema.names if not name.startswith("_") or name in (RESCUED, CORRUPT)]


def with_row_id(rows: DataFrame, table: str, identity: Sequence[Column]) -> DataFrame:
    """Add `ROW_ID`: a digest of the table and of what identifies the row, and its number among rows that are alike."""
    parts = (part.alias(f"p{at}") for at, part in enumerate(identity))
    known = rows.withColumn("_identity", F.to_json(F.struct(*parts)))
    number = F.expr("row_number() over (partition by _identity order by _identity)").cast("string")
    digest = F.sha2(F.concat_ws("\n", F.lit(table), F.col("_identity"), number), 256)
    return known.withColumn(ROW_ID, F.substring(digest, 1, 16)).drop("_identity")
