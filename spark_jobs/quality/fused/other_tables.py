"""Whether the values of a version exist in another table."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.one_pass import COUNT, grouped
from spark_jobs.quality.fused.rule import Sampled
from spark_jobs.quality.fused.samples import plain, some_of
from spark_jobs.quality.verdicts.judged_version import IN_TABLE, JudgedVersion
from spark_jobs.quality.verdicts.judgement import Judgement

_KNOWN = "_exists_there"


def values_exist_in_other_table(df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    """Each value of a column, or combination of several, is in the other table's certified version.

    As with a foreign key of SQL, a row with NULL in any of the columns refers to nothing, and is not judged.
    """
    given = rule.arguments
    other, version = given["other_table"], judged.others[given["other_table"]]
    if version is None:
        return Judgement(False, error=f"{other} has no certified version yet: run it and its gate first")
    own, theirs = _columns(rule)
    there = judged.read(other, version)
    if wrong := _misfits(df, own, there, theirs, other):
        return Judgement(False, error=wrong)
    values = grouped(df.dropna(subset=own), tuple(own))
    known = there.select(*[F.col(one).alias(name) for name, one in zip(own, theirs, strict=True)]).distinct()
    joined = values.join(known.withColumn(_KNOWN, F.lit(True)), on=own, how="left")
    return _judgement(joined, rule, own, judged.facts.get(IN_TABLE), f"{other} version {version}")


def _columns(rule: Expectation) -> tuple[list[str], list[str]]:
    given = rule.arguments
    return (
        list(given.get("column_list") or [given["column"]]),
        list(given.get("other_column_list") or [given["other_column"]]),
    )


def _misfits(df: DataFrame, own: list[str], there: DataFrame, theirs: list[str], other: str) -> str:
    if missing := [name for name in theirs if name not in there.columns]:
        return f"{other} has no column {', '.join(missing)}"
    pairs = [(df.schema[name], there.schema[one]) for name, one in zip(own, theirs, strict=True)]
    return "; ".join(
        f"{one.name} is {one.dataType.simpleString()} and {other}.{two.name} is {two.dataType.simpleString()}"
        for one, two in pairs
        if one.dataType != two.dataType
    )


def _judgement(joined: DataFrame, rule: Expectation, own: list[str], rows: int | None, against: str) -> Judgement:
    missing = F.col(_KNOWN).isNull()
    value = F.col(own[0]) if "column" in rule.arguments else F.struct(*own)
    found = joined.agg(
        F.coalesce(F.sum(COUNT), F.lit(0)).alias("among"),
        F.coalesce(F.sum(F.when(missing, F.col(COUNT))), F.lit(0)).alias("missing"),
        some_of(value, missing).alias("shown"),
    ).collect()[0]
    passed = found.among == 0 or (found.among - found.missing) / found.among >= rule.arguments.get("mostly", 1)
    shown = [plain(one, Sampled(value, group=tuple(own))) for one in found.shown]
    details = {"element_count": rows, "unexpected_count": found.missing, "partial_unexpected_list": shown}
    return Judgement(passed, details if not passed else {**details, "partial_unexpected_list": []}, against=against)
