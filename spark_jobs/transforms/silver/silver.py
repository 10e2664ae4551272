"""From bronze rows to typed silver rows, each with its order, its content hash, and the rules it fails."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.job.refusal_reasons import MISFIT
from include.contracts.spec.column_spec import ColumnSpec
from include.contracts.spec.expectation import Action
from include.contracts.spec.table_spec import SilverSpec
from spark_jobs.quality.rules.row_rules import REFUSALS_TYPE, refusals
from spark_jobs.transforms.judgement import judged, missing_values, no_refusal
from spark_jobs.transforms.received import FIXED, ROW_ID
from spark_jobs.transforms.records import RESCUED
from spark_jobs.transforms.silver.changes import row_hash
from spark_jobs.transforms.silver.ties import GREATEST_HASH, MENDED_HASHES

_LONGEST_VALUE = 100
"""Characters of a value that a reason shows."""


def origin(bronze: DataFrame) -> tuple[Column, Column, Column]:
    """Where a row came from, as the quarantine tells it: `_source`, `_position` and `_interval_start`."""
    if "_offset" in bronze.columns:
        place = F.concat_ws("/", "_topic", "_partition"), F.col("_offset")
    else:
        place = F.col("_source_file"), F.lit(None).cast("bigint")
    return place[0].alias("_source"), place[1].alias("_position"), F.col("_interval_start")


def silver_rows(bronze: DataFrame, spec: SilverSpec, *more: Column) -> DataFrame:
    """Typed rows of the spec's columns, and what a merge needs to know of each.

    Returns:
        The spec's columns, `_sequence` and `_source_hash` (the order of the event), `_content_hash`, `_is_delete`,
        `_refusals`, the origin, and `more` of the bronze row. A truncate is a delete without keys.
    """
    typed = bronze.select(
        *(_value(name, column, spec).alias(name) for name, column in spec.columns.items()),
        (_is_true(spec.apply_as_deletes) | _is_true(spec.apply_as_truncates)).alias("_is_delete"),
        _is_true(spec.apply_as_truncates).alias("_is_truncate"),
        row_hash(source_columns(bronze)).alias("_source_hash"),
        _unfit(bronze, spec).alias("_unfit"),
        *origin(bronze),
        *more,
    )
    ordered = typed.withColumns({"_sequence": sequence(spec), "_content_hash": row_hash(spec.stored_columns)})
    return judged(ordered, spec.row_rules, *_refusals(spec)).drop("_unfit", "_is_truncate")


def key_values(spec: SilverSpec) -> list[Column]:
    """The keys of a row as its source says them; null where a value does not fit the key's type."""
    return [_received(name, spec.columns[name]).try_cast(spec.columns[name].type).alias(name) for name in spec.keys]


def source_columns(bronze: DataFrame) -> list[str]:
    """What the source said of a row; where it came from and when is no part of it."""
    return [name for name in bronze.columns if not name.startswith("_") or name == RESCUED]


def mended_rows(received: DataFrame, spec: SilverSpec) -> DataFrame:
    """As `silver_rows`, of rows with `ROW_ID` and `FIXED`, which are kept as well.

    One in which somebody has mended something comes after every event of the same sequence that a source delivered:
    else its original, once a rule lets that through, could take its place. Of several such rows the order is by hash.
    """
    rows = silver_rows(received, spec, F.col(ROW_ID), F.col(FIXED))
    last = F.lit(GREATEST_HASH) - F.pmod("_source_hash", F.lit(MENDED_HASHES))
    return rows.withColumn("_source_hash", F.when(F.col(FIXED), last).otherwise(F.col("_source_hash")))


def sequence(spec: SilverSpec) -> Column:
    """What orders the events of a key: `sequence_by`, or the interval for a source without one."""
    return F.struct(*(spec.sequence_by or ("_interval_start",)))


def sequence_type(spec: SilverSpec) -> str:
    """The Spark type of `_sequence`."""
    parts = [f"{name}:{spec.columns[name].type}" for name in spec.sequence_by] or ["_interval_start:timestamp"]
    return f"struct<{','.join(parts)}>"


def start_type(spec: SilverSpec) -> str:
    """The Spark type of `__START_AT` and `__END_AT`: that of the sequence, of its one column where it has one."""
    one = spec.columns[spec.sequence_by[0]].type if spec.sequence_by else "timestamp"
    return sequence_type(spec) if len(spec.sequence_by) > 1 else one


def _received(name: str, column: ColumnSpec) -> Column:
    return F.expr(column.expression) if column.expression else F.col(name)


def _value(name: str, column: ColumnSpec, spec: SilverSpec) -> Column:
    value = _received(name, column).try_cast(column.type)
    is_key_of_truncates = spec.apply_as_truncates and name in spec.keys
    return F.when(~_is_true(spec.apply_as_truncates), value) if is_key_of_truncates else value


def _unfit(bronze: DataFrame, spec: SilverSpec) -> Column:
    """A refusal for each column that is converted and whose value does not fit the type."""
    columns = spec.columns.items()
    received = bronze.select(*(_received(name, column).alias(name) for name, column in columns)).schema
    found = [_misfit(name, column) for name, column in columns if received[name].dataType.simpleString() != column.type]
    return F.array_compact(F.array(*found).cast(REFUSALS_TYPE)) if found else no_refusal()


def _misfit(name: str, column: ColumnSpec) -> Column:
    received = _received(name, column)
    value = F.substring(received.cast("string"), 1, _LONGEST_VALUE)
    reason = F.concat(F.lit(f"{name} is no {column.type}: "), value)
    parts = {"rule": F.lit(MISFIT), "action": F.lit(Action.QUARANTINE.value), "reason": reason}
    refusal = F.struct(*(part.alias(label) for label, part in parts.items()))
    return F.when(received.isNotNull() & received.try_cast(column.type).isNull(), refusal)


def _is_true(condition: str | None) -> Column:
    return F.coalesce(F.expr(condition), F.lit(False)) if condition else F.lit(False)


def _refusals(spec: SilverSpec) -> list[Column]:
    """A row needs its sequence, and its keys unless it is a truncate; a delete needs no more, others fit all rules."""
    needed = tuple(dict.fromkeys((*spec.keys, *spec.sequence_by)))
    missing = missing_values(needed)
    if spec.apply_as_truncates:
        missing = F.when(F.col("_is_truncate"), missing_values(spec.sequence_by)).otherwise(missing)
    required = tuple(name for name, column in spec.columns.items() if not column.nullable and name not in needed)
    of_values = (
        F.col("_unfit"),
        missing_values(required),
        refusals(spec.row_rules),
    )
    return [missing, *(F.when(F.col("_is_delete"), no_refusal()).otherwise(part) for part in of_values)]
