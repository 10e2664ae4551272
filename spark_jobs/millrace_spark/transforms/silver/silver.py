"""Make typed silver rows from bronze rows, each with its order, its content hash and the rules that it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import INVALID_VALUE
from millrace.contracts.spec.bronze_sources import NULL_MESSAGE
from millrace.contracts.spec.change_data import SOURCE_TABLE
from millrace.contracts.spec.column_types import TIMES
from millrace.contracts.spec.common_settings import ColumnSpec
from millrace.contracts.spec.expectation import Action, Expectation
from millrace.contracts.spec.nested_type import is_nested, scalar_types
from millrace.contracts.spec.table_spec import SilverSpec
from millrace_spark.quality.rules.row_clock import CLOCK
from millrace_spark.quality.rules.row_rules import REFUSALS, REFUSALS_TYPE, refusal, refusals
from millrace_spark.transforms.received import IS_FIXED, ROW_ID
from millrace_spark.transforms.records import RESCUED, shown_text
from millrace_spark.transforms.refusals import clock_of, missing_values, no_refusal, refusal_when, with_refusals
from millrace_spark.transforms.silver.changes import row_hash
from millrace_spark.transforms.silver.origins import origin
from millrace_spark.transforms.silver.ties import FIXED_HASHES, GREATEST_HASH
from millrace_spark.transforms.values.exact_values import (
    can_be_stored,
    exact,
    may_not_be_stored,
    with_mark,
    with_null_values,
)
from millrace_spark.transforms.values.java_functions import with_java_functions
from millrace_spark.transforms.values.nested_values import (
    MISFIT,
    OF_ANOTHER_TYPE,
    VALUE,
    WHOLE,
    losses,
    nested_as_json,
    read_as,
    result,
    with_sorted_maps,
)
from millrace_spark.transforms.values.unstorable import refused_partition_texts

_MAX_VALUE_LENGTH = 100
"""Characters of a value that a reason shows."""


def silver_rows(bronze: DataFrame, spec: SilverSpec, *more: Column) -> DataFrame:
    """Return typed rows of the spec's columns, with the columns that a merge needs.

    Args:
        bronze: rows of a source, with `_source_table` if the table has a list of sources. Rules judge a row as of the
            time in `CLOCK`, or else as of that at which bronze loaded it: each batch that reads it again agrees.
        spec: the spec, as if this were the only source (`SilverSpec.of_source`).
        more: further columns of the bronze row.

    Returns:
        The spec's columns, `_sequence` and `_source_hash` (the order of the event), `_content_hash`, `_is_delete`,
        `_refusals`, the origin, and `more` of the bronze row. A truncate is a delete without keys. `_refusals` lacks
        those by references: they follow from another table.
    """
    bronze = with_java_functions(bronze)
    received = bronze.select(*(_received(name, column).alias(name) for name, column in spec.columns.items()))
    kinds = dict(received.dtypes)
    typed = bronze.select(
        *(part for name, column in spec.columns.items() for part in _typed(name, column, spec, kinds[name])),
        (_is_true(spec.apply_as_deletes) | _is_true(spec.apply_as_truncates)).alias("_is_delete"),
        _is_true(spec.apply_as_truncates).alias("_is_truncate"),
        row_hash(source_columns(bronze), nested_columns(bronze)).alias("_source_hash"),
        _invalid_values(spec, kinds).alias("_invalid_values"),
        (F.col(NULL_MESSAGE) if NULL_MESSAGE in bronze.columns else F.lit(False)).alias("_is_null_message"),
        *origin(bronze),
        *clock_of(_own_rules(spec), F.col(CLOCK if CLOCK in bronze.columns else "_ingested_at")),
        *more,
    )
    ordered = typed.withColumns(
        {"_sequence": sequence(spec), "_content_hash": row_hash(spec.stored_columns, spec.nested_columns)}
    )
    refused = with_refusals(ordered, _own_rules(spec), *_refusals(spec))
    return refused.withColumn(REFUSALS, _without_second_reason(REFUSALS)).drop(
        "_invalid_values", "_is_null_message", "_is_truncate", CLOCK, *map(_read, spec.columns)
    )


def without_quarantining(spec: SilverSpec) -> SilverSpec:
    """Return the spec without the rules that put rows into quarantine, for rows on which a batch has decided before."""
    rules = tuple(rule for rule in spec.expectations if rule.action is not Action.QUARANTINE)
    return spec.model_copy(update={"expectations": rules})


def key_values(bronze: DataFrame, spec: SilverSpec) -> list[Column]:
    """Return the keys of a bronze row; null where a value does not fit the key's type."""
    keys = {name: spec.columns[name] for name in spec.keys}
    received = (_received(name, column).alias(name) for name, column in keys.items())
    kinds = dict(with_java_functions(bronze).select(*received).dtypes)
    return [_exact(name, column, kinds[name]).alias(name) for name, column in keys.items()]


def source_columns(bronze: DataFrame) -> list[str]:
    """Return the columns with the source's values, without those on where and when the row came.

    Of several sources, the table is one of them: the same values can mean another row there.
    """
    return [name for name in bronze.columns if not name.startswith("_") or name in (RESCUED, SOURCE_TABLE)]


def nested_columns(bronze: DataFrame) -> list[str]:
    """Return the columns that are structs, arrays or maps."""
    return [name for name, kind in bronze.dtypes if is_nested(kind)]


def fixed_rows(received: DataFrame, spec: SilverSpec) -> DataFrame:
    """Return `silver_rows` of rows with `ROW_ID` and `IS_FIXED`, and these two columns.

    A row that a person fixed comes after every delivered event of the same sequence: otherwise its original could
    replace it once a rule accepts the original. The hash orders several fixed rows.
    """
    rows = silver_rows(received, spec, F.col(ROW_ID), F.col(IS_FIXED))
    last = F.lit(GREATEST_HASH) - F.pmod("_source_hash", F.lit(FIXED_HASHES))
    return rows.withColumn("_source_hash", F.when(F.col(IS_FIXED), last).otherwise(F.col("_source_hash")))


def sequence(spec: SilverSpec) -> Column:
    """Return the struct that orders the events of a key."""
    return F.struct(*spec.sequence_fields)


def _received(name: str, column: ColumnSpec) -> Column:
    unmarked = column.model_copy(update={"decimal_comma": False})
    return with_null_values(F.expr(column.expression) if column.expression else F.col(name), unmarked)


def _exact(name: str, column: ColumnSpec, received: str) -> Column:
    """Return the value of a column without parts; null if it does not fit."""
    value = nested_as_json(_received(name, column), received, None)
    if column.decimal_comma and received == "string":
        value = with_mark(value, is_number=False)
    value = exact(value, "string" if is_nested(received) else received, column.type, column)
    # Bronze has no text that is not UTF-8, but bytes may be none, and SQL can make a text of them.
    may_be_bytes = column.type == "string" and (column.expression or received == "binary")
    return F.when(can_be_stored(value, "string"), value) if may_be_bytes else value


def _may_not_fit(column: ColumnSpec, received: str) -> bool:
    """Whether a column can have values that do not fit: converted ones, old dates, and such as SQL makes."""
    if received != column.type or not scalar_types(column.type).isdisjoint(TIMES):
        return True
    return bool(column.expression) and may_not_be_stored(column.type)


def _typed(name: str, column: ColumnSpec, spec: SilverSpec, received: str) -> Iterator[Column]:
    """Yield the column; before it, if it has a nested type, what is read of its value.

    A value of another type is read part by part, as in bronze: a cast between structs would go by the position of their
    fields, and not by their names.
    """
    if not is_nested(column.type):
        value = _exact(name, column, received)
        is_key_of_truncates = spec.apply_as_truncates and name in spec.keys
        yield (F.when(~_is_true(spec.apply_as_truncates), value) if is_key_of_truncates else value).alias(name)
        return
    read = F.col(_read(name))
    yield _read_parts(name, column, received).alias(_read(name))
    yield F.when(read[MISFIT] != OF_ANOTHER_TYPE, with_sorted_maps(read[VALUE], column.type)).alias(name)


def _read_parts(name: str, column: ColumnSpec, received: str) -> Column:
    value = _received(name, column)
    if received != column.type or column.null_values:
        return read_as(_as_text(value, received), column.type, column)
    fits = can_be_stored(value, column.type) if _may_not_fit(column, received) else F.lit(True)
    return result(value, F.when(fits, WHOLE).otherwise(OF_ANOTHER_TYPE))


def _as_text(value: Column, received: str) -> Column:
    return nested_as_json(value, received, None).cast("string")


def _read(name: str) -> str:
    return f"_read_{name}"


def _invalid_values(spec: SilverSpec, kinds: Mapping[str, str]) -> Column:
    """Return a refusal for each column whose value may not fit the type, and does not."""
    invalid = []
    for name, column in ((name, column) for name, column in spec.columns.items() if _may_not_fit(column, kinds[name])):
        value, read = _received(name, column), F.col(_read(name))
        if not is_nested(column.type):
            is_invalid = value.isNotNull() & _exact(name, column, kinds[name]).isNull()
            shown = shown_text(value) if kinds[name] in ("binary", "string") else value.cast("string")
        elif kinds[name] == column.type and not column.null_values:
            is_invalid, shown = read[MISFIT] == OF_ANOTHER_TYPE, F.to_json(value)
        else:
            shown = losses(_as_text(value, kinds[name]), read, column.type, name, column)
            is_invalid = read[MISFIT] == OF_ANOTHER_TYPE
        reason = F.concat(F.lit(f"{name} is no {column.type}: "), F.substring(shown, 1, _MAX_VALUE_LENGTH))
        invalid.append(F.when(is_invalid, refusal(INVALID_VALUE, Action.QUARANTINE, reason)))
    return F.array_compact(F.array(*invalid).cast(REFUSALS_TYPE)) if invalid else no_refusal()


def _is_true(condition: str | None) -> Column:
    return F.coalesce(F.expr(condition), F.lit(False)) if condition else F.lit(False)


def _own_rules(spec: SilverSpec) -> list[Expectation]:
    """Return the rules that need nothing but the row."""
    return [rule for rule in spec.row_rules if not rule.is_reference]


def _refusals(spec: SilverSpec) -> list[Column]:
    """Check the sequence of every row, the keys except of a truncate, and all rules except of a delete.

    A null message without a key says nothing: Debezium sends one after each delete.
    """
    needed = tuple(dict.fromkeys((*spec.keys, *spec.sequence_by)))
    missing = missing_values(needed)
    if spec.apply_as_truncates:
        missing = F.when(F.col("_is_truncate"), missing_values(spec.sequence_by)).otherwise(missing)
    has_no_key = F.array_contains(F.array(*(F.col(name).isNull() for name in spec.keys)), True)
    is_tombstone = F.col("_is_null_message") & ~F.col("_is_delete") & has_no_key
    dropped = refusal_when(is_tombstone, "null message", "it has no values and no key, as a tombstone", Action.DROP)
    missing = F.when(is_tombstone, dropped).otherwise(missing)
    required = tuple(name for name, column in spec.columns.items() if not column.nullable and name not in needed)
    texts = [name for name in spec.partitioned_by if spec.columns[name].type == "string"]
    lost = refused_partition_texts(name for name in texts if name in needed)
    lost_values = refused_partition_texts(name for name in texts if name not in needed)
    of_values = (F.col("_invalid_values"), missing_values(required), *lost_values, refusals(_own_rules(spec)))
    is_unchecked = F.col("_is_delete") | is_tombstone
    return [missing, *lost, *(F.when(is_unchecked, no_refusal()).otherwise(part) for part in of_values)]


def _without_second_reason(refused: str) -> Column:
    """Return refusals without that of a missing value where the value is refused because it does not fit."""

    def is_second(each: Column) -> Column:
        start = F.concat(F.substring_index(each["reason"], " is null", 1), F.lit(" is no "))
        return F.exists(refused, lambda other: (other["rule"] == INVALID_VALUE) & other["reason"].startswith(start))

    # Few rows are refused for two reasons: the others never reach the interpreted search.
    return F.when(F.size(refused) > 1, F.filter(refused, lambda each: ~is_second(each))).otherwise(F.col(refused))
