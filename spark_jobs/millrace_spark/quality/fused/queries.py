"""The rule that a query over a version returns no rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.expectation import OWN_TABLE, Expectation
from millrace.sql.rule_query import Query, view_of
from millrace_spark.quality.fused.samples import sample_values
from millrace_spark.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from millrace_spark.quality.verdicts.restricted_rules import RestrictedRules
from millrace_spark.quality.verdicts.rule_result import RuleResult


def query_returns_no_rows(
    df: DataFrame, rule: Expectation, checked: ComparableVersion, restricted: RestrictedRules
) -> RuleResult:
    """Check that the query returns no rows; other tables are read at their certified versions.

    What comes from a restricted column is masked in the rows that are shown.

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
        columns = {table: each.columns for table, each in frames.items()}
        hidden = _restricted_places(query.spark_text, columns, rows.columns, restricted)
        numbered = rows.toDF(*(f"_{place}" for place in range(len(rows.columns))))
        values = [
            (F.lit(RESTRICTED) if hidden is None or place in hidden else F.col(f"_{place}")).alias(name)
            for place, name in enumerate(rows.columns)
        ]
        shown = numbered.select(F.to_json(F.struct(*values), {"ignoreNullFields": "false"}).alias("row"))
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


def _restricted_places(
    query: str, columns: Mapping[str, Sequence[str]], results: Sequence[str], restricted: RestrictedRules
) -> Collection[int] | None:
    """Return the places of the columns of a query that come from restricted ones; None if that cannot be said.

    Args:
        query: the query over views.
        columns: table as the rule names it -> its columns.
        results: the columns of the query.
        restricted: the restricted columns of these tables.
    """
    of_views = {view_of(table): restricted.of(table) for table in columns}
    if not any(of_views.values()):
        return ()
    from millrace.sql.query.lineage import places_of_results  # loads sqlglot, which takes half a second

    of_sources = {view_of(table): tuple(names) for table, names in columns.items()}
    of_results = places_of_results(query, of_sources, results)
    if of_results is None:
        return None
    return [
        place for place, origins in enumerate(of_results) if any(name in of_views[view] for view, name, _ in origins)
    ]
