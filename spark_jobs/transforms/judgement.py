"""Which rows a batch accepts: every rule a row fails, in one pass, NULL-safe."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.rules.row_rules import (
    REFUSALS,
    REFUSALS_TYPE,
    is_dropped,
    is_quarantined,
    not_null_rules,
    refusals,
    require_fit,
)


def accepted() -> Column:
    """The row fails no rule."""
    return F.size(REFUSALS) == 0


def quarantined() -> Column:
    """The row fails a rule that quarantines; it wins over one that drops."""
    return is_quarantined(F.col(REFUSALS))


def dropped() -> Column:
    """The row fails only rules that drop."""
    return is_dropped(F.col(REFUSALS))


def reasons() -> Column:
    """array<string>: `rule: reason`, one for each rule that the row fails."""
    return F.transform(
        REFUSALS, lambda refused: F.concat_ws(": ", refused["rule"], F.nullif(refused["reason"], F.lit("")))
    )


def fate_counts() -> list[Column]:
    """Aggregates over judged rows: `read`, `accepted`, `quarantined`, `dropped`."""
    return [
        F.count(F.lit(1)).alias("read"),
        F.count(F.when(accepted(), 1)).alias("accepted"),
        # Few rows are refused: the others never reach the interpreted search of their refusals.
        F.count(F.when(~accepted() & quarantined(), 1)).alias("quarantined"),
        F.count(F.when(~accepted() & dropped(), 1)).alias("dropped"),
    ]


def refused_when(condition: Column, rule: str, reason: str) -> Column:
    """One quarantining refusal where `condition` is true, none where it is false or null."""
    parts = {"rule": rule, "action": "quarantine", "reason": reason}
    refusal = F.struct(*(F.lit(value).alias(name) for name, value in parts.items()))
    return F.when(condition, F.array(refusal).cast(REFUSALS_TYPE)).otherwise(no_refusal())


def no_refusal() -> Column:
    """The refusals of an accepted row."""
    return F.array().cast(REFUSALS_TYPE)


def missing_values(required: Sequence[str]) -> Column:
    """A refusal for each required column that a row has no value for."""
    return refusals(not_null_rules(required))


def judged(df: DataFrame, rules: Sequence[Expectation], *parts: Column) -> DataFrame:
    """Add `_refusals`: the parts put together.

    Raises:
        SpecError: a rule names a column that `df` lacks, or compares it with values of another kind.
    """
    require_fit(df.schema, rules)
    return df.withColumn(REFUSALS, F.concat(*parts))
