"""The rules that a column's values are distributed as in the last certified version."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, TimestampType

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.fused.one_pass import collect_together
from millrace_spark.quality.verdicts.comparable_version import ComparableVersion
from millrace_spark.quality.verdicts.rule_result import RuleResult

LEAST_SHARE = 0.0001
"""The least share: with a share of 0 the index of a value that appears or disappears would be infinite."""

_TENTHS = [tenth / 10 for tenth in range(1, 10)]


def null_share_is_stable(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    """Check that the share of NULLs differs by at most `max_change` from that of the last certified version."""
    column = rule.arguments["column"]
    if checked.certified is None or checked.missing_past(column):
        return RuleResult(True, not_judged=checked.missing_past(column))
    before = checked.read(checked.table, checked.certified)
    share = F.avg(F.col(column).isNull().cast("double"))
    shares = collect_together([df.agg(share.alias("now")), before.agg(share.alias("before"))])
    if "before" not in shares:
        return RuleResult(True, not_judged=f"{checked.last_certified} has no rows")
    passed = "now" in shares and abs(shares["now"] - shares["before"]) <= rule.arguments["max_change"]
    observed = {name: round(value, 6) for name, value in sorted(shares.items())}
    return RuleResult(passed, {"observed_value": observed}, against=checked.last_certified)


def distribution_is_stable(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    """Check that the population stability index against the last certified version is at most `max_psi`.

    It is the sum over all parts of (share now - share before) * ln(share now / share before). A part is a value of text
    or a boolean, a tenth of the certified version's values for types that have an order, or NULL. As a usual rule of
    thumb, an index below 0.1 is a small change, and one above 0.25 a large change (B. Yurdakul, Statistical
    Properties of Population Stability Index, Western Michigan University, 2018).
    """
    column = rule.arguments["column"]
    if checked.certified is None or checked.missing_past(column):
        return RuleResult(True, not_judged=checked.missing_past(column))
    before = checked.read(checked.table, checked.certified)
    rows_now, rows_before = (checked.rows_of(checked.table, at) for at in (checked.version, checked.certified))
    if not rows_before:
        return RuleResult(True, not_judged=f"{checked.last_certified} has no rows")
    if not rows_now:
        return RuleResult(False, {"observed_value": None}, against=checked.last_certified)
    part = _part(before, column).alias("part")
    sides = [
        frame.select(part, F.lit(is_now).alias("now"), F.lit(1 - is_now).alias("before"))
        for frame, is_now in ((df, 1), (before, 0))
    ]
    counts = sides[0].unionAll(sides[1]).groupBy("part").agg(F.sum("now").alias("now"), F.sum("before").alias("before"))
    index = _index(counts, rows_now, rows_before).collect()[0].asDict()
    observed = {**index, "psi": round(index["psi"], 6)}
    passed = index["psi"] <= rule.arguments["max_psi"]
    return RuleResult(passed, {"observed_value": observed}, against=checked.last_certified)


def _part(before: DataFrame, column: str) -> Column:
    """Return the part that a value belongs to, NULL for NULL. The lower end names a part of a type with an order."""
    kind, value = before.schema[column].dataType, F.col(column)
    if not isinstance(kind, NumericType | DateType | TimestampType):
        return value
    is_number = isinstance(kind, NumericType)
    # Spark computes percentiles of numbers only.
    figure = value if is_number else F.unix_seconds(value.cast("timestamp"))
    edges = before.agg(F.percentile_approx(figure.cast("double"), _TENTHS, 10_000)).collect()[0][0] or []
    part = F.lit("-")
    for edge in sorted(set(edges)):
        name = f"above {edge:g}" if is_number else f"after {datetime.fromtimestamp(edge, UTC):%Y-%m-%dT%H:%M:%S}"
        part = F.when(figure > F.lit(edge), F.lit(name)).otherwise(part)
    return F.when(value.isNotNull(), part)


def _index(counts: DataFrame, rows_now: int, rows_before: int) -> DataFrame:
    least = F.lit(LEAST_SHARE)
    now, before = (F.greatest(F.col(side) / rows, least) for side, rows in (("now", rows_now), ("before", rows_before)))
    term, part = (now - before) * F.ln(now / before), F.coalesce(F.col("part").cast("string"), F.lit("no value"))
    return counts.select(part.alias("part"), term.alias("term")).agg(
        F.sum("term").alias("psi"), F.count(F.lit(1)).alias("parts"), F.max_by("part", "term").alias("changed_most")
    )
