"""The expectations that compare a version with its interval, its past, or other tables.

If there is nothing to compare with yet, such as too few past versions, the result says so and the rule passes. If a
value is missing that should exist, such as a figure of an empty version, the rule fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from itertools import islice
from operator import and_
from statistics import median

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, StructType, TimestampType

from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.duration import AGE
from millrace.contracts.spec.expectation import OWN_TABLE, Expectation
from millrace.contracts.spec.expectation_arguments import QUERY, REFERENCES
from millrace.sql.rule_query import Query, view_of
from millrace_spark.quality.fused.adjustments import GREATEST, TOTAL, Facts
from millrace_spark.quality.fused.one_pass import Figures, collect_together
from millrace_spark.quality.fused.other_tables import Reference
from millrace_spark.quality.fused.rule import FusedRule, Samples
from millrace_spark.quality.fused.samples import sample_values
from millrace_spark.quality.rules.conditions import require_readable
from millrace_spark.quality.rules.figure_bounds import EPOCH
from millrace_spark.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from millrace_spark.quality.verdicts.restricted_rules import RestrictedRules
from millrace_spark.quality.verdicts.rule_result import ALL_ROWS, RuleResult, one_line

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


def compile_comparison(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> FusedRule | RuleResult | None:
    """Compile a comparison to figures; return its result if it cannot be evaluated, and None if figures do not suffice.

    Raises:
        PySparkException: the version cannot be read at all, which is no rule's fault.
    """
    if rule.name == "expect_table_to_be_fresh":
        return _freshness_rule(rule, df.schema, checked)
    if rule.name not in REFERENCES:
        return None
    try:
        return _reference_rule(rule, df.schema, checked)
    except PySparkException as error:
        require_readable(df)
        return RuleResult(False, error=one_line(str(error)), is_raised=True)


def _reference_rule(rule: Expectation, schema: StructType, checked: ComparableVersion) -> FusedRule | RuleResult:
    """Compile a rule that each value of a column, or combination of columns, is in another table's certified version.

    As with a foreign key in SQL, a row with NULL in any of the columns refers to nothing, and is not checked.
    """
    given = rule.arguments
    other, version = given["other_table"], checked.others[given["other_table"]]
    if version is None:
        return RuleResult(False, error=f"{other} has no certified version yet: run it and its gate first")
    own = tuple(given.get("column_list") or [given["column"]])
    theirs = tuple(given.get("other_column_list") or [given["other_column"]])
    reference = Reference(own, other, theirs, checked.read(other, version))
    if error := type_errors(schema, reference):
        return RuleResult(False, error=error)
    rows, against = f"rows that refer by {', '.join(own)}", f"{other} version {version}"

    def evaluate(facts: Facts) -> RuleResult:
        missing = facts[reference.missing]
        passed = facts[rows] == 0 or (facts[rows] - missing) / facts[rows] >= given.get("mostly", 1)
        details = {"element_count": checked.facts.get(IN_TABLE), "unexpected_count": missing}
        return RuleResult(passed, details, against=against)

    keys = [F.col(key).alias(name) for key, name in zip(reference.keys, own, strict=True)]
    samples = Samples(keys[0] if "column" in given else F.struct(*keys), reference=reference)
    count = F.count_if(reduce(and_, [F.col(name).isNotNull() for name in own]))
    return FusedRule(Figures({rows: count}, adjust={rows: TOTAL}, references=frozenset({reference})), evaluate, samples)


def type_errors(schema: StructType, reference: Reference) -> str:
    """Return which columns are missing or have different types; empty if there are none."""
    other, columns = reference.other, reference.rows.schema
    if missing := [name for name in reference.theirs if name not in columns.names]:
        return f"{other} has no column {', '.join(missing)}"
    pairs = [(schema[name], columns[their]) for name, their in zip(reference.own, reference.theirs, strict=True)]
    return "; ".join(
        f"{mine.name} is {mine.dataType.simpleString()} and {other}.{their.name} is {their.dataType.simpleString()}"
        for mine, their in pairs
        if mine.dataType != their.dataType
    )


def _freshness_rule(rule: Expectation, schema: StructType, checked: ComparableVersion) -> FusedRule:
    """Compile a rule that a column's newest value is at most `max_age` old at the end of the interval or the commit.

    It does not use the clock: a backfill of last year would always be stale, and checking a version twice could give
    two results. A date counts from the beginning of its day.
    """
    column = rule.arguments["column"]
    figure = f"greatest {column}"
    at = checked.committed_at if rule.arguments.get("as_of") == "commit" else checked.interval_end
    is_moment = isinstance(schema[column].dataType, TimestampType)
    newest = F.unix_micros(F.max(column)) if is_moment else F.max(column)

    def evaluate(facts: Facts) -> RuleResult:
        moment = facts[figure]
        if isinstance(moment, date):
            moment = datetime.combine(moment, time(), UTC)
        elif moment is not None:
            moment = EPOCH + timedelta(microseconds=moment)
        is_fresh = moment is not None and at - moment <= AGE.parse(rule.arguments["max_age"])
        return RuleResult(is_fresh, {"observed_value": moment and moment.isoformat()}, against=at.isoformat())

    adjustment = GREATEST if is_moment else replace(GREATEST, column=column)
    return FusedRule(Figures({figure: newest}, adjust={figure: adjustment}), evaluate)


def compare_version(
    df: DataFrame, rule: Expectation, checked: ComparableVersion, restricted: RestrictedRules
) -> RuleResult:
    """Evaluate any other of these expectations on the version; the rows of a query without restricted values.

    Raises:
        PySparkException: the version cannot be read at all, which is no rule's fault.
    """
    try:
        if rule.name == QUERY:
            result = query_returns_no_rows(df, rule, checked, restricted)
        else:
            result = _COMPARE[rule.name](df, rule, checked)
        return result if rule.name in _BY_THE_LOG else replace(result, judged_by=ALL_ROWS)
    except DeltaError as error:
        return RuleResult(False, error=one_line(str(error)))
    except PySparkException as error:
        require_readable(df)
        return RuleResult(False, error=one_line(str(error)), is_raised=True)


def _rows_near_median(_df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    given = rule.arguments
    fact, versions = given.get("rows", IN_TABLE), given["of_last"]
    past = list(islice((facts[fact] for facts in checked.past() if fact in facts), versions))
    if len(past) < versions:
        return RuleResult(True, not_judged=f"{len(past)} of {versions} certified versions are known before this one")
    if fact not in checked.facts:
        return RuleResult(True, not_judged="the batch only deletes rows")
    rows, usual = checked.facts[fact], median(past)
    percent = 100 * rows / usual if usual else float("inf") if rows else 100.0
    passed = given.get("min_percent", 0) <= percent <= given.get("max_percent", percent)
    observed = {"rows": rows, "median": usual, "percent": round(percent, 1)}
    return RuleResult(passed, {"observed_value": observed}, against=f"the last {versions} certified versions")


def _columns_stable(_df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    if checked.certified is None:
        return RuleResult(True, not_judged=checked.missing_past())
    before = checked.columns_of(checked.table, checked.certified)
    now = checked.columns_of(checked.table, checked.version)
    changes = {
        "added": [f"{name} {kind}" for name, kind in now.items() if name not in before],
        "removed": [name for name in before if name not in now],
        "retyped": [f"{name} {was} -> {now[name]}" for name, was in before.items() if now.get(name, was) != was],
    }
    drift = {kind: columns for kind, columns in changes.items() if columns}
    is_allowed = set(drift) <= set(rule.arguments.get("allow", ()))
    return RuleResult(is_allowed, {"observed_value": drift}, against=checked.last_certified)


def _reconciles(df: DataFrame, rule: Expectation, checked: ComparableVersion) -> RuleResult:
    source, given = rule.arguments["source"], rule.arguments
    if source not in checked.sources:
        return RuleResult(False, error=f"the batch of version {checked.version} did not read {source}")
    version = checked.sources[source]
    measures = {"own": given["measure"], "source": given["source_measure"]}
    frames = [
        df.agg(F.expr(measures["own"]).alias("own")),
        checked.read(source, version).agg(F.expr(measures["source"]).alias("source")),
    ]
    values = collect_together(frames)
    if missing := [measure for side, measure in measures.items() if side not in values]:
        return RuleResult(False, error=f"{' and '.join(missing)} has no value; use coalesce(..., 0) to replace NULL")
    own, theirs = float(values["own"]), float(values["source"])
    is_equal = abs(own - theirs) <= abs(theirs) * given.get("tolerance_percent", 0) / 100
    details = {"observed_value": {"own": values["own"], "source": values["source"]}}
    return RuleResult(is_equal, details, against=f"{source} version {version}")


_BY_THE_LOG = {"expect_table_row_count_to_be_near_median", "expect_table_columns_to_be_stable"}
"""The comparisons that read no rows."""

_COMPARE: dict[str, Callable[[DataFrame, Expectation, ComparableVersion], RuleResult]] = {
    "expect_table_row_count_to_be_near_median": _rows_near_median,
    "expect_table_columns_to_be_stable": _columns_stable,
    "expect_table_to_reconcile_with_source": _reconciles,
    "expect_column_null_share_to_be_stable": null_share_is_stable,
    "expect_column_distribution_to_be_stable": distribution_is_stable,
}


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
