"""Which rows a batch accepts: find every rule that a row fails, in one pass and NULL-safe."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import MALFORMED
from millrace.contracts.spec.expectation import Action, Expectation
from millrace.contracts.spec.expectation_arguments import SQL
from millrace.errors import SpecError
from millrace_spark.quality.rules.conditions import condition_error
from millrace_spark.quality.rules.row_clock import CLOCK, reads_clock, with_clock_column
from millrace_spark.quality.rules.row_rules import REFUSALS, REFUSALS_TYPE, refusal, refusals, require_fit
from millrace_spark.transforms.records import is_no_text

_BYTES_OF = {"json": "UTF-8 text", "csv": "UTF-8 text"}


def clock_of(rules: Sequence[Expectation], at: Column) -> list[Column]:
    """Return the column by which rules read the clock, if one of them does.

    Args:
        rules: row rules.
        at: the time at which a row is judged.
    """
    reads = any(reads_clock(rule.arguments["condition"]) for rule in rules if rule.name == SQL)
    return [at.cast("timestamp").alias(CLOCK)] if reads else []


def is_accepted() -> Column:
    """Return true for a row that fails no rule."""
    return F.size(REFUSALS) == 0


def is_quarantined() -> Column:
    """Return true for a row that fails a rule with `action: quarantine`; that action outweighs `drop`."""
    return F.exists(REFUSALS, lambda refused: refused["action"] == Action.QUARANTINE.value)


def is_dropped() -> Column:
    """Return true for a row that fails rules with `action: drop` alone."""
    return ~is_accepted() & ~is_quarantined()


def reasons() -> Column:
    """Return array<string>: `rule: reason` for each rule that the row fails."""
    return F.transform(
        REFUSALS, lambda refused: F.concat_ws(": ", refused["rule"], F.nullif(refused["reason"], F.lit("")))
    )


def row_counts() -> list[Column]:
    """Return aggregates over rows with `_refusals`: `read`, `accepted`, `quarantined` and `dropped`."""
    return [
        F.count(F.lit(1)).alias("read"),
        F.count(F.when(is_accepted(), 1)).alias("accepted"),
        # Few rows are refused: the other rows never reach the interpreted search of their refusals.
        F.count(F.when(~is_accepted() & is_quarantined(), 1)).alias("quarantined"),
        F.count(F.when(is_dropped(), 1)).alias("dropped"),
    ]


def refusal_when(condition: Column, rule: str, reason: str, action: Action = Action.QUARANTINE) -> Column:
    """Return one refusal where `condition` is true, and none where it is false or null."""
    refused = F.array(refusal(rule, action, reason)).cast(REFUSALS_TYPE)
    return F.when(condition, refused).otherwise(no_refusal())


def unparsed(record: str, kind: str) -> Column:
    """Return the refusal of a record of a format that could not be parsed, by the column that has its text, or null.

    A JSON `null` is dropped: Debezium writes one after each delete.
    """
    text, bytes_of = F.col(record), _BYTES_OF.get(kind, kind)
    reason = F.when(is_no_text(text), f"its bytes are no {bytes_of}, and are shown in base64")
    malformed = refusal(MALFORMED, Action.QUARANTINE, reason.otherwise(f"it cannot be parsed as {kind}"))
    tombstone = refusal("null record", Action.DROP, "it has no values, as a tombstone")
    is_null = F.lit(kind == "json") & (F.btrim(text, F.lit(" \t\r\n")) == "null")
    refused = F.when(is_null, F.array(tombstone)).otherwise(F.array(malformed))
    return F.when(text.isNotNull(), refused.cast(REFUSALS_TYPE)).otherwise(no_refusal())


def no_refusal() -> Column:
    """Return the refusals of an accepted row: an empty array."""
    return F.array().cast(REFUSALS_TYPE)


def missing_values(required: Sequence[str]) -> Column:
    """Return a refusal for each required column that is null in a row."""
    rules = [
        Expectation(
            name="expect_column_values_to_not_be_null",
            arguments={"column": column},
            action=Action.QUARANTINE,
            reason=f"{column} is null",
        )
        for column in dict.fromkeys(required)
    ]
    return refusals(rules)


def with_refusals(df: DataFrame, rules: Sequence[Expectation], *parts: Column) -> DataFrame:
    """Add `_refusals`: all refusals in `parts`, one array after the other. `df` has `CLOCK` if a rule reads the clock.

    Raises:
        SpecError: a rule names a column that `df` lacks, or compares a column with values of another kind, or Spark
            cannot read its SQL as a condition.
    """
    require_fit(df.schema, rules)
    conditions = [(rule, rule.arguments["condition"]) for rule in rules if rule.name == SQL]
    if wrong := [
        f"{rule.rule}: {cause}" for rule, sql in conditions if (cause := condition_error(df, with_clock_column(sql)))
    ]:
        raise SpecError("\n".join(wrong), "Correct the rule in the spec, then run again.")
    return df.withColumn(REFUSALS, F.concat(*parts))
