"""Gold groups: which measures Spark computes from another one."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from millrace_spark.layers.gold.query import refresh_of_table, rows_of_query, touched_rows_of_query
from tests.support.documents.measures import READING_A_RESULT
from tests.support.documents.specs import gold_spec


def test_spark_refuses_a_measure_within_an_aggregate_or_a_window(spark: SparkSession) -> None:
    orders = spark.sql("SELECT date '2013-01-01' AS day, 'a' AS order_id, 1 AS amount")
    for measure in READING_A_RESULT:
        spec = gold_spec(measures={"orders": "count(*)", "m": measure})
        with pytest.raises(AnalysisException, match="LATERAL_COLUMN_ALIAS_IN_"):
            _ = rows_of_query(spark, spec, {"o": orders}).columns
    plain = gold_spec(measures={"orders": "count(*)", "m": "orders + sum(o.amount)"})
    assert rows_of_query(spark, plain, {"o": orders}).columns == ["day", "orders", "m"]


def test_floats_are_no_values_by_which_groups_are_chosen(spark: SparkSession) -> None:
    """The text 0.1 of a float is no number that equals it: its group stayed as it was."""
    rows = spark.sql("SELECT CAST(0.1 AS FLOAT) AS f, -0.0D AS d, 0.10 AS c, true AS b, X'FF' AS x, 'a' AS s, 1 AS n")
    found = {
        (group, given): refresh_of_table(
            spark,
            gold_spec(
                sources={"o": {"table": "silver.orders"}},
                refresh_by="k",
                refresh_from={"o": given},
                group_by={"k": group},
                measures={"rows": "count(*)"},
            ),
            {"o": rows},
        ).reason
        for group, given in (
            *((each, each) for each in "fdcbxsn"),
            ("CAST(f AS STRING)", "f"),
            ("round(f, 1)", "s"),
            ("n", "c"),
        )
    }
    assert found == {
        ("f", "f"): "k is float, by whose values no run can choose rows",
        ("d", "d"): "k is double, by whose values no run can choose rows",
        ("x", "x"): "k is binary, by whose values no run can choose rows",
        ("CAST(f AS STRING)", "f"): "refresh_from.o is float, by whose values no run can choose rows",
        ("round(f, 1)", "s"): "k is float, by whose values no run can choose rows",
        **dict.fromkeys([("n", "c"), *((each, each) for each in "cbsn")], ""),
    }


SAME_VALUES = [
    ("s", "s"), ("n % 2 = 0", "n % 2 = 0"), ("n", "CAST(n AS BIGINT)"), ("CAST(n AS BIGINT)", "CAST(n AS SMALLINT)"),
    ("c", "CAST(c AS DECIMAL(38,18))"), ("CAST(c AS DECIMAL(38,18))", "c"), ("CAST(c AS DECIMAL(38,20))", "c"),
    ("to_date(at)", "CAST(at AS DATE)"), ("date_trunc('DAY', at)", "to_date(at)"), ("at", "at"),
    ("to_date(at)", "date_trunc('DAY', at)"), ("CAST(at AS TIMESTAMP_NTZ)", "at"), ("to_json(struct(f, c, at))",) * 2,
    ("hex(CAST(s AS BINARY))", "hex(CAST(s AS BINARY))"),
]  # fmt: skip
"""Groups, and what `refresh_from` gives of the same value in another type."""
OF_ANOTHER_TYPE = [pair for pair in SAME_VALUES if "DECIMAL" in "".join(pair) or "NTZ" in pair[0]]
"""Those of which nobody knows that what is stated is the same value."""


def test_groups_of_touched_values_are_those_of_all_rows_for_every_type(spark: SparkSession) -> None:
    values = """
        (1, 1.10, 0.1F, '', timestamp'2024-01-01 00:00:00'), (2, 1.1, 0.0F, 'a', timestamp'2024-01-01 10:00:00.5'),
        (3, -0.01, -0.0F, "it's \\\\", timestamp'0001-01-01 00:00:00'), (4, 99999999.99, float('NaN'), 'A', NULL),
        (4, 99999999.98, NULL, '01', timestamp'1582-10-04 23:59:59.999999'), (NULL, NULL, 1.5F, '1', NULL),
        (-5, 0.00, 7.0F, NULL, timestamp'9999-12-31 23:59:59'), (1, 0, 1e10F, 'e\u0301', timestamp'1969-12-31 00:00:00')
    """
    rows = spark.sql(
        f"SELECT CAST(n AS INT) n, CAST(c AS DECIMAL(10,2)) c, f, s, at FROM VALUES {values} AS v(n, c, f, s, at)"
    )
    texts = (f"CAST({group} AS STRING)" for group, _ in SAME_VALUES)
    *by_group, numbers = zip(*rows.selectExpr(*texts, "n").collect(), strict=True)
    found, expected, computed_whole = Counter(), Counter(), list[tuple[str, str]]()
    for at, (group, given) in enumerate(SAME_VALUES):
        spec = gold_spec(
            sources={"o": {"table": "silver.orders"}},
            refresh_by="k",
            refresh_from={"o": given},
            group_by={"k": group},
            measures={"rows": "count(*)", "total": "sum(o.n)"},
        )
        refresh = refresh_of_table(spark, spec, {"o": rows})
        if refresh.reason:
            computed_whole.append((group, given))
            continue
        of_rows = [text for (text,) in rows.selectExpr(f"CAST({refresh.keys['o'][0]} AS STRING)").collect()]
        touched = sorted({*of_rows}, key=str)[at % 2 :: 2]
        groups = touched_rows_of_query(spark, spec, {"o": rows}, refresh, touched)
        for value, count, total in groups.select(F.col("k").cast("string"), "rows", "total").collect():
            assert (at, value, "rows") not in found, "each group once"
            found[at, value, "rows"], found[at, value, "total"] = count, total or 0
        for value, text, number in zip(by_group[at], of_rows, numbers, strict=True):
            if text in touched:
                expected[at, value, "rows"] += 1
                expected[at, value, "total"] += number or 0
    assert computed_whole == OF_ANOTHER_TYPE
    assert len(found) > 5 * (len(SAME_VALUES) - len(OF_ANOTHER_TYPE))
    assert found == expected
