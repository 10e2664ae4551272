"""Rows as a table's writer receives them, as JSON: exact enough to receive them again and to identify them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from millrace_spark.transforms.records import CORRUPT, RESCUED
from millrace_spark.transforms.values.nested_values import EXACT_TIMES

RECEIVED = "_received"
"""A row as JSON."""

ROW_ID = "_row_id"
"""The id of the quarantined row that a replay tries again."""

IS_FIXED = "_is_fixed"
"""True for a row in which a person fixed a value."""

_READ_OPTIONS = {**EXACT_TIMES, "columnNameOfCorruptRecord": "_unparsed"}
"""With Spark's default name it would overwrite the field `_corrupt_record`."""

_INGESTION_COLUMNS = ("_ingested_at", "_batch_token")
"""Columns of a bronze row that depend on when it was loaded."""


def is_received(name: str) -> bool:
    """Whether silver receives this column of a bronze table."""
    return name not in _INGESTION_COLUMNS


def as_received(columns: Iterable[str]) -> Column:
    """Return the columns as JSON, sorted by name; nulls are left out, so that a new column does not change the JSON."""
    return F.to_json(F.struct(*(F.col(f"`{name}`") for name in sorted(columns))), EXACT_TIMES)


def values_of(text: Column, schema: StructType) -> Column:
    """Return a struct of the columns of `schema`, with their values in a JSON object."""
    return F.from_json(text, schema, _READ_OPTIONS)


def editable_columns(schema: StructType) -> list[str]:
    """Return the columns that people may change: the source's values, not where and when the row came."""
    return [name for name in schema.names if not name.startswith("_") or name in (RESCUED, CORRUPT)]


def with_row_id(rows: DataFrame, table: str, identity: Sequence[Column]) -> DataFrame:
    """Add `ROW_ID`: a digest of the table, the row's identity, and the row's number among rows of the same identity."""
    parts = (part.alias(f"p{at}") for at, part in enumerate(identity))
    identified = rows.withColumn("_identity", F.to_json(F.struct(*parts)))
    number = F.expr("row_number() over (partition by _identity order by _identity)").cast("string")
    digest = F.sha2(F.concat_ws("\n", F.lit(table), F.col("_identity"), number), 256)
    return identified.withColumn(ROW_ID, F.substring(digest, 1, 16)).drop("_identity")
