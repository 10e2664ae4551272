"""The expectations that hold a version against its interval, its past, or other tables.

What there is not yet to be held against, such as a past of too few versions, is told and refuses nothing. What should
be there and is not, such as a figure of an empty version, does not pass.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from statistics import median
from typing import Any

from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from include.contracts.spec.duration import AGE
from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.fused.distributions import distribution_is_stable, null_share_is_stable
from spark_jobs.quality.fused.one_pass import Facts, Figures, collected_together, require_readable
from spark_jobs.quality.fused.other_tables import values_exist_in_other_table
from spark_jobs.quality.fused.rule import FusedRule
from spark_jobs.quality.rules.figure_bounds import EPOCH
from spark_jobs.quality.verdicts.judged_version import IN_TABLE, JudgedVersion
from spark_jobs.quality.verdicts.judgement import Judgement, observed
from spark_jobs.quality.verdicts.one_line import one_line

FRESH = "expect_table_to_be_fresh"
"""The one comparison that needs no more than a figure of the version itself."""


def fresh(rule: Expectation, schema: StructType, judged: JudgedVersion) -> FusedRule:
    """The newest value of a column is not older than `max_age`, at the end of the interval or at the commit.

    Never by the clock: a backfill of a year ago would be stale whatever it brought, and the same version judged twice
    would have two verdicts. A day counts from its beginning.
    """
    column = rule.arguments["column"]
    at = judged.committed_at if rule.arguments.get("as_of") == "commit" else judged.interval_end
    is_moment = isinstance(schema[column].dataType, TimestampType)
    newest = F.unix_micros(F.max(column)) if is_moment else F.max(column)

    def judge(facts: Facts) -> Judgement:
        found = _moment(facts[f"greatest {column}"])
        is_fresh = found is not None and at - found <= AGE.parse(rule.arguments["max_age"])
        return Judgement(is_fresh, {"observed_value": found and found.isoformat()}, against=at.isoformat())

    return FusedRule(Figures({f"greatest {column}": newest}), judge)


def compared(df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    """What any other of these expectations says of the version.

    Raises:
        PySparkException: the version cannot be read at all: then no rule is to blame.
    """
    try:
        return _COMPARE[rule.name](df, rule, judged)
    except DeltaError as error:
        return Judgement(False, error=one_line(str(error)))
    except PySparkException as error:
        require_readable(df)
        return Judgement(False, error=one_line(str(error)))


def _moment(newest: Any) -> datetime | None:
    if isinstance(newest, date):
        return datetime.combine(newest, time(), UTC)
    return None if newest is None else EPOCH + timedelta(microseconds=newest)


def _rows_near_median(_df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    given = rule.arguments
    counted, wanted = given.get("rows", IN_TABLE), given["of_last"]
    past = list(islice((facts[counted] for facts in judged.past() if counted in facts), wanted))
    if len(past) < wanted:
        return Judgement(True, not_judged=f"{len(past)} of {wanted} certified versions are known before this one")
    rows, usual = judged.facts[counted], median(past)
    percent = _percent(rows, usual)
    passed = given.get("min_percent", 0) <= percent <= given.get("max_percent", percent)
    said = observed(passed, {"rows": rows, "median": usual, "percent": round(percent, 1)})
    return Judgement(said.passed, said.details, against=f"the last {wanted} certified versions")


def _percent(rows: float, usual: float) -> float:
    if usual:
        return 100 * rows / usual
    return float("inf") if rows else 100.0


def _columns_stable(_df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    if judged.certified is None:
        return Judgement(True, not_judged=judged.lacks())
    before = judged.columns_of(judged.table, judged.certified)
    now = judged.columns_of(judged.table, judged.version)
    found = {
        "added": [f"{name} {kind}" for name, kind in now.items() if name not in before],
        "removed": [name for name in before if name not in now],
        "retyped": [f"{name} {was} -> {now[name]}" for name, was in before.items() if now.get(name, was) != was],
    }
    drift = {kind: columns for kind, columns in found.items() if columns}
    is_allowed = set(drift) <= set(rule.arguments.get("allow", ()))
    return Judgement(is_allowed, {"observed_value": drift}, against=judged.last_certified)


def _reconciles(df: DataFrame, rule: Expectation, judged: JudgedVersion) -> Judgement:
    source, given = rule.arguments["source"], rule.arguments
    if source not in judged.sources:
        return Judgement(False, error=f"the batch of version {judged.version} has read nothing of {source}")
    version = judged.sources[source]
    measured = [
        df.agg(F.expr(given["measure"]).alias("own")),
        judged.read(source, version).agg(F.expr(given["source_measure"]).alias("source")),
    ]
    found = collected_together(measured)
    if missing := [given[key] for name, key in _MEASURES.items() if name not in found]:
        return Judgement(False, error=f"{' and '.join(missing)} has no value; say what none is by coalesce(..., 0)")
    own, theirs = float(found["own"]), float(found["source"])
    is_equal = abs(own - theirs) <= abs(theirs) * given.get("tolerance_percent", 0) / 100
    details = {"observed_value": {"own": found["own"], "source": found["source"]}}
    return Judgement(is_equal, details, against=f"{source} version {version}")


_MEASURES = {"own": "measure", "source": "source_measure"}

_COMPARE: dict[str, Callable[[DataFrame, Expectation, JudgedVersion], Judgement]] = {
    "expect_table_row_count_to_be_near_median": _rows_near_median,
    "expect_table_columns_to_be_stable": _columns_stable,
    "expect_table_to_reconcile_with_source": _reconciles,
    "expect_column_values_to_exist_in_other_table": values_exist_in_other_table,
    "expect_compound_columns_to_exist_in_other_table": values_exist_in_other_table,
    "expect_column_null_share_to_be_stable": null_share_is_stable,
    "expect_column_distribution_to_be_stable": distribution_is_stable,
}
