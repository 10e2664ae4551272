"""The queries that `lakehouse check` accepts, held against Spark, which can parse each; and what QUALIFY keeps."""

from __future__ import annotations

import pytest
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import Row, SparkSession

from millrace.sql.query.select_query import query_of
from tests.unit.millrace.sql.query.test_select_query import ALLOWED, SOURCES
from tests.unit.millrace.sql.query.test_trace import COLUMNS, TRACED, UNTRACED

TEXTS = [*ALLOWED, *(query for query, _ in (*TRACED, *UNTRACED) if query_of(query).tree)]

QUALIFIED = [
    ("SELECT day, n FROM t QUALIFY row_number() OVER (PARTITION BY day ORDER BY n DESC) = 1", [(1, 7), (2, 3)]),
    ("SELECT day, rank() OVER w AS n FROM t QUALIFY n = 2 WINDOW w AS (PARTITION BY day ORDER BY n)", []),
    ("SELECT day, rank() OVER w AS place FROM t QUALIFY place = 2 WINDOW w AS (PARTITION BY day ORDER BY n)", [(1, 2)]),
    ("SELECT day, sum(n) AS s FROM t GROUP BY day HAVING s > 1 QUALIFY rank() OVER (ORDER BY sum(n)) = 1", [(2, 3)]),
    ("SELECT DISTINCT day FROM t QUALIFY count(*) OVER (PARTITION BY day) > 1", [(1,)]),
    ("SELECT * FROM t QUALIFY max(n) OVER () = n UNION ALL SELECT 9, 9 ORDER BY n", [(1, 7), (9, 9)]),
    (
        "WITH x AS (SELECT t.*, n AS day FROM t QUALIFY n > 3) SELECT n FROM x QUALIFY lag(n) OVER (ORDER BY n) > 1",
        [(7,)],
    ),
]


def test_spark_can_parse_every_query_that_is_accepted(spark: SparkSession) -> None:
    for alias in {*COLUMNS, *SOURCES}:
        names = COLUMNS.get(alias, ("day", "a", "b", "origin", "parts"))
        spark.sql(f"SELECT {', '.join(f'1 AS {name}' for name in names)}").createOrReplaceTempView(alias)
    unparsable, analysed = {}, 0
    for text in TEXTS:
        if [each for each in query_of(text).refusals(COLUMNS) if "source" not in each.message]:
            continue
        try:
            _ = spark.sql(f"SELECT * FROM (\n{query_of(text).spark_text}\n)").schema
        except ParseException as error:
            unparsable[text] = str(error).splitlines()[0]
        except PySparkException:
            continue  # types and functions of the rows do not matter here
        analysed += 1
    assert unparsable == {}
    assert analysed > 50


@pytest.mark.parametrize(("query", "rows"), QUALIFIED)
def test_a_query_with_qualify_keeps_the_rows_for_which_it_is_true(
    spark: SparkSession, query: str, rows: list[tuple[int, ...]]
) -> None:
    spark.createDataFrame([Row(day=1, n=5), Row(day=1, n=7), Row(day=2, n=3)]).createOrReplaceTempView("t")
    text = query_of(query).spark_text
    assert [tuple(row) for row in spark.sql(f"SELECT * FROM (\n{text}\n)").collect()] == rows, text
