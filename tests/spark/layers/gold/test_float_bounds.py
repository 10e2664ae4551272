"""Sums of doubles in any order are within the bounds of one of them, and hardly any other value is."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import GoldSpec
from millrace_spark.layers.gold.float_bounds import with_bounds
from millrace_spark.layers.gold.query import rows_of_query
from millrace_spark.transforms.differences import as_groups, compare_groups
from tests.support.documents.specs import gold_query_spec, gold_spec

NUMBERS = [1e16, 1.0, -1e16, 0.125, 7.0]
"""Their sum is 8.125; in this order it is 7.125, and from the last one on 8.0."""

MEASURES = {
    "total": "sum(f.x)", "mean": "avg(f.x)", "rounded": "CAST(round(sum(f.x) / 10, 0) AS DECIMAL(10,2))",
    "share": "100 * sum(f.x) FILTER (WHERE f.x > -1e16) / nullif(sum(f.y), 0)", "twice": "total * 2",
    "whole": "sum(f.n)", "spread": "stddev(f.x)", "none": "sum(f.nan)", "top": "max(f.x)",
}  # fmt: skip
OF_GROUPS = "SELECT f.k, count(*) AS n, {} FROM f WHERE f.x IS NOT NULL GROUP BY f.k"


@pytest.mark.parametrize("form", ["declared", "query"])
def test_sums_in_another_order_are_no_difference_and_other_values_are(spark: SparkSession, form: str) -> None:
    rows = [(x, number, "a", float("nan"), x / 3) for number, x in enumerate(NUMBERS)]
    rows += [(x / 1e15, number, "b", 1.0, 2.0) for number, x in enumerate(NUMBERS)]
    one, other = (
        spark.createDataFrame(each, "x double, n int, k string, nan double, y double").coalesce(1)
        for each in (rows, rows[::-1])
    )
    source = {"sources": {"f": {"table": "silver.orders"}}}
    if form == "declared":
        spec = gold_spec(**source, refresh_by="k", refresh_from={"f": "k"}, group_by={"k": "f.k"}, measures=MEASURES)
    else:
        named = ", ".join(f"{text} AS {name}" for name, text in MEASURES.items())
        spec = gold_query_spec(**source, query=OF_GROUPS.format(named), refresh_by="k")

    def compute(spec: GoldSpec, rows: DataFrame = one) -> DataFrame:
        return rows_of_query(spark, spec, {"f": rows})

    plain, in_other_order = compute(spec).collect(), compute(spec, other)
    stored = spark.createDataFrame(
        in_other_order.collect(), in_other_order.schema
    )  # a query reads its views at the end
    computed, measures = with_bounds(compute, spec), list(MEASURES)
    assert sorted(plain)[0].total != stored.where("k = 'a'").collect()[0].total, "the order counts"
    if form == "query":
        bounds = [name for name in computed.columns if name.startswith(("_least_", "_greatest_"))]
        stored, computed = as_groups(stored, ["k"], measures), as_groups(computed, ["k"], [*measures, *bounds])
    for changes, differing in (({}, []), ({name: F.col(name) * 1.5 + 60 for name in measures}, measures)):
        if form == "query":
            changes = {name: F.transform(name, lambda value: value * 1.5 + 60) for name in changes}
        found = (
            compare_groups(stored.withColumns({"k": F.col("k"), **changes}), computed, ["k"], measures)
            .select("k", "_differing")
            .collect()
        )
        expected = [name for name in differing if name not in ("none", "share")]  # whose divisor may be 0
        assert dict(found) == {"a": expected, "b": differing}, list(changes)
