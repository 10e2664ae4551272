"""Whether the values of a column are spread as they were in the last certified version."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, TimestampType

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import collected_together
from spark_jobs.quality.verdicts.judged_version import JudgedVersion
from spark_jobs.quality.verdicts.judgement import Judgement

LEAST_SHARE = 0.0001
"""What a share of nothing counts as: the index of a value that comes or goes would be infinite."""

_TENTHS = [tenth / 10 for tenth in range(1, 10)]


def null_share_is_stable(df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    """The share of rows without a value differs by at most `max_change` from that of the last certified version."""
    column = rule.arguments["column"]
    if judged.certified is None or judged.lacks(column):
        return Judgement(True, not_judged=judged.lacks(column))
    before = judged.read(judged.table, judged.certified)
    share = F.avg(F.col(column).isNull().cast("double"))
    shares = collected_together([df.agg(share.alias("now")), before.agg(share.alias("before"))])
    if "before" not in shares:
        return Judgement(True, not_judged=f"{judged.last_certified} has no rows")
    passed = "now" in shares and abs(shares["now"] - shares["before"]) <= rule.arguments["max_change"]
    told = {name: round(value, 6) for name, value in sorted(shares.items())}
    return Judgement(passed, {"observed_value": told}, against=judged.last_certified)


def distribution_is_stable(df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    """The population stability index against the last certified version is at most `max_psi`.

    The sum over all parts of (share now - share before) * ln(share now / share before), where a part is a value of a
    text or a boolean, a tenth of the certified version's values for anything that has an order, and no value at all.
    The usual rule of thumb reads below 0.1 as little change, and above 0.25 as a large one (B. Yurdakul, Statistical
    Properties of Population Stability Index, Western Michigan University, 2018).
    """
    column = rule.arguments["column"]
    if judged.certified is None or judged.lacks(column):
        return Judgement(True, not_judged=judged.lacks(column))
    before = judged.read(judged.table, judged.certified)
    rows_now, rows_before = (judged.rows_of(judged.table, one) for one in (judged.version, judged.certified))
    if not rows_before:
        return Judgement(True, not_judged=f"{judged.last_certified} has no rows")
    if not rows_now:
        return Judgement(False, {"observed_value": None}, against=judged.last_certified)
    part = _part(before, column)
    found = _index(_counted(df, before, part), rows_now, rows_before).collect()[0].asDict()
    told = {"psi": round(found["psi"], 6), "parts": found["parts"], "changed_most": found["changed_most"]}
    return Judgement(found["psi"] <= rule.arguments["max_psi"], {"observed_value": told}, against=judged.last_certified)


def _part(before: DataFrame, column: str) -> Column:
    """The part that a value belongs to; NULL for none. Parts with an order are told by their lower end."""
    kind, value = before.schema[column].dataType, F.col(column)
    if not isinstance(kind, NumericType | DateType | TimestampType):
        return value
    # Numbers alone have an order that Spark can put in parts.
    figure = value if isinstance(kind, NumericType) else F.unix_seconds(value.cast("timestamp"))
    edges = before.agg(F.percentile_approx(figure.cast("double"), _TENTHS, 10_000)).collect()[0][0] or []
    part = F.lit("-")
    for edge in sorted(set(edges)):
        part = F.when(figure > F.lit(edge), F.lit(_lower_end(edge, kind))).otherwise(part)
    return F.when(value.isNotNull(), part)


def _lower_end(edge: float, kind: object) -> str:
    if isinstance(kind, NumericType):
        return f"above {edge:g}"
    return f"after {datetime.fromtimestamp(edge, UTC):%Y-%m-%dT%H:%M:%S}"


def _counted(now: DataFrame, before: DataFrame, part: Column) -> DataFrame:
    sides = [
        frame.select(part.alias("part"), F.lit(is_now).alias("now"), F.lit(1 - is_now).alias("before"))
        for frame, is_now in ((now, 1), (before, 0))
    ]
    return sides[0].unionAll(sides[1]).groupBy("part").agg(F.sum("now").alias("now"), F.sum("before").alias("before"))


def _index(counted: DataFrame, rows_now: int, rows_before: int) -> DataFrame:
    least = F.lit(LEAST_SHARE)
    now, before = (F.greatest(F.col(side) / rows, least) for side, rows in (("now", rows_now), ("before", rows_before)))
    term, part = (now - before) * F.ln(now / before), F.coalesce(F.col("part").cast("string"), F.lit("no value"))
    return counted.select(part.alias("part"), term.alias("term")).agg(
        F.sum("term").alias("psi"), F.count(F.lit(1)).alias("parts"), F.max_by("part", "term").alias("changed_most")
    )
