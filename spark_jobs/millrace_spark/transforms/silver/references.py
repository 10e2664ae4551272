"""Refuse the rows of a silver table whose values do not exist in another table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.rules.row_rules import REFUSALS
from millrace_spark.transforms.received import RECEIVED
from millrace_spark.transforms.refusals import refusal_when

EARLIER = "_earlier_reasons"
"""array<string>: the reasons for which a row is in quarantine."""

_EXISTS = "_exists"


def refuse_unknown(rows: DataFrame, rule: Expectation, others: DataFrame) -> DataFrame:
    """Refuse the rows whose values do not exist in the other table.

    As with a foreign key in SQL, a row with NULL in any of the columns refers to nothing, and passes. So does a delete.

    Args:
        rows: rows with `_is_delete` and `_refusals`.
        rule: the reference.
        others: the rows of the other table.
    """
    own = rule.checked_columns
    pairs = zip(rule.referenced_columns, own, strict=True)
    existing = others.select(*(F.col(theirs).alias(name) for theirs, name in pairs)).distinct()
    joined = rows.join(existing.withColumn(_EXISTS, F.lit(True)), own, "left")
    has_values = [F.col(name).isNotNull() for name in own]
    return _refuse(rows, joined, rule, F.col(_EXISTS).isNull(), *has_values)


def refuse_as_before(rows: DataFrame, rules: Sequence[Expectation], refused: DataFrame) -> DataFrame:
    """Refuse the rows that are in quarantine for one of the rules, whatever the other tables have now.

    Args:
        rows: rows with `_is_delete`, `_refusals` and `RECEIVED`.
        rules: the references.
        refused: the rows in quarantine: `RECEIVED` and `EARLIER`, one row for each different row.
    """
    for rule in rules:
        is_reason = F.exists(EARLIER, partial(_is_reason_of, rule))
        rows = _refuse(rows, rows.join(refused, RECEIVED, "left"), rule, is_reason)
    return rows


def refuse_quarantined(rows: DataFrame, stored: DataFrame) -> DataFrame:
    """Refuse the rows that are in quarantine, for whatever reason.

    Args:
        rows: rows with `_refusals` and `RECEIVED`.
        stored: `RECEIVED` of the rows in quarantine.
    """
    joined = rows.join(stored.distinct().withColumn(_EXISTS, F.lit(True)), RECEIVED, "left")
    refused = F.concat(REFUSALS, refusal_when(F.col(_EXISTS), "quarantine", "an earlier batch has refused it"))
    return joined.withColumn(REFUSALS, refused).select(*rows.columns)


def _is_reason_of(rule: Expectation, reason: Column) -> Column:
    return (reason == rule.rule) | reason.startswith(f"{rule.rule}: ")


def _refuse(rows: DataFrame, joined: DataFrame, rule: Expectation, *conditions: Column) -> DataFrame:
    failed = ~F.col("_is_delete")
    for condition in conditions:
        failed &= condition
    refused = F.concat(REFUSALS, refusal_when(failed, rule.rule, rule.reason))
    return joined.withColumn(REFUSALS, refused).select(*rows.columns)
