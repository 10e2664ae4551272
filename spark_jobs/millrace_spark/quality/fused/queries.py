"""The rule that a query over a version returns no rows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.spec.expectation import OWN_TABLE, Expectation
from millrace.sql.rule_query import Query, view_of
from millrace_spark.quality.fused.samples import sample_values
from millrace_spark.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from millrace_spark.quality.verdicts.rule_result import RuleResult


def query_returns_no_rows(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    """Check that the query returns no rows; other tables are read at their certified versions.

    The query is parsed again, because Spark would also execute a statement that writes.
    """
    query = Query(rule.arguments["query"])
    if query.error:
        return RuleResult(False, error=query.error)
    versions = {table: checked.others[table] for table in rule.other_tables}
    if missing := [table for table, version in versions.items() if version is None]:
        return RuleResult(False, error=f"{missing[0]} has no certified version yet: run it and its gate first")
    others = {table: checked.read(table, version) for table, version in versions.items() if version is not None}
    frames = {OWN_TABLE: df, **others}
    for table, frame in frames.items():
        frame.createOrReplaceTempView(view_of(table))
    try:
        rows = df.sparkSession.sql(query.spark_text)
        shown = rows.select(F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("row"))
        counts = shown.agg(F.count(F.lit(1)).alias("rows"), sample_values(F.col("row"), F.lit(True)).alias("samples"))
        found = counts.collect()[0]
    finally:
        for table in frames:
            df.sparkSession.catalog.dropTempView(view_of(table))
    details = {
        "element_count": checked.facts.get(IN_TABLE),
        "unexpected_count": found.rows,
        "partial_unexpected_list": found.samples,
    }
    against = ", ".join(f"{table} version {version}" for table, version in versions.items())
    return RuleResult(found.rows == 0, details, against=against)
