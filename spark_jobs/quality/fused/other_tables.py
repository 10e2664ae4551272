"""The rules that the values of a version exist in another table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.groups import COUNT, grouped
from spark_jobs.quality.fused.rule import Samples
from spark_jobs.quality.fused.samples import plain_value, sample_values
from spark_jobs.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from spark_jobs.quality.verdicts.rule_result import RuleResult

_EXISTS = "_exists"


def values_exist_in_other_table(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    """Check that each value of a column, or combination of columns, is in the other table's certified version.

    As with a foreign key in SQL, a row with NULL in any of the columns refers to nothing, and is not checked.
    """
    given = rule.arguments
    other, version = given["other_table"], checked.others[given["other_table"]]
    if version is None:
        return RuleResult(False, error=f"{other} has no certified version yet: run it and its gate first")
    own = list(given.get("column_list") or [given["column"]])
    theirs = list(given.get("other_column_list") or [given["other_column"]])
    other_rows = checked.read(other, version)
    if error := _type_errors(df, own, other_rows, theirs, other):
        return RuleResult(False, error=error)
    values = grouped(df.dropna(subset=own), tuple(own))
    pairs = zip(own, theirs, strict=True)
    existing = other_rows.select(*[F.col(their).alias(name) for name, their in pairs]).distinct()
    joined = values.join(existing.withColumn(_EXISTS, F.lit(True)), on=own, how="left")
    missing = F.col(_EXISTS).isNull()
    value = F.col(own[0]) if "column" in given else F.struct(*own)
    counts = joined.agg(
        F.coalesce(F.sum(COUNT), F.lit(0)).alias("rows"),
        F.coalesce(F.sum(F.when(missing, F.col(COUNT))), F.lit(0)).alias("missing"),
        sample_values(value, missing).alias("samples"),
    ).collect()[0]
    passed = counts.rows == 0 or (counts.rows - counts.missing) / counts.rows >= given.get("mostly", 1)
    samples = [] if passed else [plain_value(sample, Samples(value, group=tuple(own))) for sample in counts.samples]
    details = {
        "element_count": checked.facts.get(IN_TABLE),
        "unexpected_count": counts.missing,
        "partial_unexpected_list": samples,
    }
    return RuleResult(passed, details, against=f"{other} version {version}")


def _type_errors(df: DataFrame, own: list[str], other_rows: DataFrame, theirs: list[str], other: str) -> str:
    """Return which columns are missing or have different types; empty if there are none."""
    if missing := [name for name in theirs if name not in other_rows.columns]:
        return f"{other} has no column {', '.join(missing)}"
    pairs = [(df.schema[name], other_rows.schema[their]) for name, their in zip(own, theirs, strict=True)]
    return "; ".join(
        f"{mine.name} is {mine.dataType.simpleString()} and {other}.{their.name} is {their.dataType.simpleString()}"
        for mine, their in pairs
        if mine.dataType != their.dataType
    )
