"""A query computed for the touched values gives the rows of a query computed whole, whatever changed in its sources."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import GoldSpec
from millrace_spark.delta_io.reads import read_changes, read_version
from millrace_spark.layers.gold.query import (
    refresh_of_query,
    refresh_of_table,
    rows_of_query,
    touched_by_lookup,
    touched_rows_of_query,
)
from tests.support.documents.specs import gold_query_spec, gold_spec
from tests.support.examples import few_or_many, settings_for

DAYS = [None, *(date(2013, month, day) for month in (1, 2) for day in (1, 2, 3, 4))]
SCHEMA = "id int, day date, origin string, amount int"

SHAPES = {
    "groups": "SELECT day, count(*) AS n, sum(amount) AS total FROM f LEFT SEMI JOIN w ON f.day <=> w.day GROUP BY day",
    "window": """
        SELECT day, id, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC, id) AS place FROM f
        LEFT ANTI JOIN w ON f.day = w.day AND f.amount = w.amount
    """,
    "union": """
        SELECT trunc(day, 'MM') AS day, id, amount FROM f UNION SELECT trunc(day, 'MM'), id, amount FROM w
        WHERE amount > 1
    """,
    "distinct": "SELECT DISTINCT coalesce(f.day, w.day) AS day, f.origin FROM f FULL JOIN w ON f.day = w.day",
    "levels": """
        WITH days AS (SELECT day AS d, avg(amount) AS mean FROM w GROUP BY ALL),
        best AS (SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY day, origin ORDER BY amount, id) AS r FROM f)
                 WHERE r = 1)
        SELECT best.day, origin, amount - mean AS above FROM best LEFT JOIN days ON days.d = best.day
    """,
    "join": """
        SELECT a.day, a.id, b.id AS other, w.amount FROM f AS a
        JOIN f AS b ON a.day = date_add(b.day, 1) AND a.origin <=> b.origin
        LEFT JOIN w ON w.day = a.day AND w.origin = b.origin
    """,
    "months": """
        SELECT trunc(f.day, 'MM') AS day, count(*) AS n, sum(w.amount) AS total FROM f LEFT JOIN w ON w.day = f.day
        GROUP BY trunc(f.day, 'MM')
    """,
    "except": "SELECT day, amount FROM f EXCEPT ALL SELECT day, amount FROM w",
    "two columns": """
        SELECT f.origin, f.day, f.id, w.amount,
               rank() OVER (PARTITION BY f.day, f.origin ORDER BY f.amount, f.id, w.amount) AS place
        FROM f LEFT JOIN w ON w.day = f.day AND w.origin = f.origin
    """,
    "two columns of a union": "SELECT trunc(day, 'MM') AS day, origin, id FROM f UNION SELECT day, 'b', id FROM w",
    "looked up": """
        WITH totals AS (SELECT origin, sum(amount) AS total FROM w GROUP BY origin)
        SELECT f.day, f.id, w.amount, w.origin, totals.total FROM f LEFT JOIN w ON w.id = f.amount
        LEFT JOIN totals ON totals.origin = w.origin
    """,
    "looked up by a range": """
        WITH kinds AS (SELECT id + 1 AS place, origin FROM w WHERE amount > 1)
        SELECT f.day, count(*) AS n, max(kinds.origin) AS most FROM f LEFT JOIN kinds
        ON kinds.place BETWEEN f.amount AND f.id AND coalesce(kinds.origin, 'a') = f.origin GROUP BY f.day
    """,
    "two columns looked up": """
        SELECT trunc(f.day, 'MM') AS day, f.origin, count(*) AS n, sum(other.amount) AS total
        FROM w JOIN f AS other ON other.id = w.amount RIGHT JOIN f ON f.amount = w.id GROUP BY 1, 2
    """,
    "sources read whole": """
        SELECT f.day, f.id, w.amount, (SELECT max(amount) FROM w) AS most FROM f LEFT JOIN w ON f.id = w.id
    """,
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@few_or_many(1, 20)
def test_recomputing_the_touched_values_gives_the_rows_of_the_whole_query(
    spark: SparkSession, tmp_path: Path, examples: int
) -> None:
    sources = {alias: {"table": f"silver.{alias}"} for alias in ("f", "w")}
    specs = {
        shape: gold_query_spec(sources=sources, query=query, refresh_by=["day", "origin"] if "two" in shape else "day")
        for shape, query in SHAPES.items()
    }

    @settings_for(examples)
    @given(seed=st.integers(0, 2**32))
    def holds(seed: int) -> None:
        random = Random(seed)
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        paths = {alias: folder / alias for alias in sources}
        for path in paths.values():
            spark.sql(
                f"CREATE TABLE delta.`{path}` ({SCHEMA}) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
            )
            merge(spark, path, random, 25)
        before = {alias: DeltaTable(path).version() for alias, path in paths.items()}
        tables = {
            shape: in_order(rows_of_query(spark, spec, frames(spark, paths, before))) for shape, spec in specs.items()
        }
        assert all(tables.values())
        refreshes = {
            shape: refresh_of_query(spark, spec, frames(spark, paths, before)) for shape, spec in specs.items()
        }
        assert {shape: set(found.lookups) for shape, found in refreshes.items() if found.lookups} == {
            "looked up": {"w"},
            "looked up by a range": {"w"},
            "two columns looked up": {"f", "w"},
        }
        assert [shape for shape, found in refreshes.items() if found.whole] == ["sources read whole"]
        for path in paths.values():
            merge(spark, path, random, 2)
        now = {alias: DeltaTable(path).version() for alias, path in paths.items()}
        for shape, spec in specs.items():
            whole = in_order(rows_of_query(spark, spec, frames(spark, paths, now)))
            assert recomputed(spark, spec, paths, before, now, tables[shape]) == whole, shape

    holds()


def test_values_of_other_types_are_not_compared_by_their_texts(spark: SparkSession) -> None:
    """'01' and 1 are equal in a join, and their texts are not."""
    sources = {
        "f": spark.sql("SELECT '01' AS day, 1.0D AS amount"),
        "w": spark.sql("SELECT 1 AS day, 2 AS amount"),
    }
    for query, reason in (
        ("SELECT f.day, w.amount FROM f JOIN w ON f.day = w.day", "day is string, and day of w is int"),
        (
            "SELECT concat('x', f.day) AS day FROM f JOIN w ON f.day = w.day",
            "a join compares them, and day of f is string and day of w is int",
        ),
        ("SELECT f.amount, w.day FROM f JOIN w ON f.amount = w.amount", "amount is double, and amount of f is double"),
        (
            "SELECT cast(f.amount AS string) AS k, count(w.day) AS n FROM f CROSS JOIN w GROUP BY f.amount",
            "k is computed from amount, and may be another one for 0.0 than for -0.0",
        ),
    ):
        spec = gold_query_spec(sources={alias: {"table": f"silver.{alias}"} for alias in sources}, query=query)
        assert refresh_of_query(spark, spec, sources).reason == reason
    for query, why in (
        ("SELECT f.day FROM f JOIN w ON w.amount = f.amount", ""),  # each row is compared as the query compares it
        (
            "SELECT f.day FROM f JOIN (SELECT amount FROM w UNION SELECT amount FROM f) AS x ON x.amount = f.amount",
            "amount of w is int, and double where x.amount = f.amount compares it",
        ),
    ):
        found = refresh_of_query(spark, gold_query_spec(sources=spec.sources, query=query), sources)
        assert (found.whole.get("w", ""), "w" in found.lookups) == (why, not why)


def test_a_stated_value_does_not_stand_in_for_a_traced_one_of_another_type(spark: SparkSession) -> None:
    """A row of `b` belongs to the day of its time: what was stated left the group as it was."""
    rows = spark.sql("SELECT DATE'2013-01-01' AS day, TIMESTAMP'2013-01-02 10:00:00' AS at")
    spec = gold_spec(
        sources={
            "a": {"table": "silver.a"},
            "b": {"table": "silver.b", "join": "inner", "on": "a.day = date_trunc('day', b.at)"},
        },
        refresh_from={"a": "trunc(day, 'MM')", "b": "trunc(day, 'MM')"},
        group_by={"day": "trunc(a.day, 'MM')"},
        measures={"n": "count(*)"},
    )
    refresh = refresh_of_table(spark, spec, {"a": rows, "b": rows})
    assert refresh.reason.startswith(
        "a join compares them, and day of a is date and DATE_TRUNC('day', at) of b is time"
    )


READ_ALIKE = (
    "to_char(amount, '999')", "date_format(day, 'MMMM')", "trunc(day, 'q')", "trunc(day, origin)", "trunc(day, 'mon')",
    "date_trunc('W', day)", "date_trunc('mm', day)", "flags & 1 << 3", "flags | 1 & 2", "flags ^ 3 & 6",
    "flags >> 1 & 3", "~flags & 7", "flags || amount + 1", "floor(log10(amount))", "instr(origin, 'a')",
    "unix_date(day)", "-1L + amount", "last_day(day)", "dateadd(day, 1, day)", "date(date_trunc('Month', day))",
    "CASE WHEN day > DATE'2013-01-03' THEN 1 ELSE 2 END", "amount DIV 2 % 3 - -1",
    "int(NOT amount = 1 OR flags IS NULL)",
    "date_add(day, -1)", "day - INTERVAL 1 MONTH", "substr(origin, -1)", "coalesce(nullif(origin, 'a'), \"it's\")",
    "if(amount BETWEEN 1 AND 2, 'x', 'y')", "int(CAST(day AS STRING) LIKE '%-01')", "extract(MONTH FROM day)",
    "dayname(day)", "try_cast(origin AS INT)", "split(origin, ',')[0]", "to_date(day)",
    "hash(origin, day) & 1",
)  # fmt: skip
"""Expressions that a trace takes through sqlglot, which by itself reads several of them as others."""

READ_OTHERWISE = ("-1::STRING || origin", "date_add(day, 1) - INTERVAL 1 DAY 2 HOURS")


def test_a_traced_value_is_that_of_the_query_in_each_row(spark: SparkSession) -> None:
    """A month in words or a bit was traced as something else: its groups went, or stayed as they were."""
    rows = spark.sql("""
        SELECT date_add(DATE'2012-12-30', CAST(id AS INT) * 9) AS day, elt(id % 3 + 1, 'MM', 'a', '7') AS origin,
               CAST(id * id % 900 + 1 AS INT) AS amount, CAST(id % 17 AS INT) AS flags FROM range(60)
        UNION ALL SELECT NULL, NULL, NULL, NULL
    """)
    columns = [f"k{place}" for place in range(len(READ_ALIKE))]
    select = ", ".join(f"{text} AS {column}" for text, column in zip(READ_ALIKE, columns, strict=True))
    spec = gold_query_spec(sources={"f": {"table": "silver.f"}}, query=f"SELECT {select} FROM f", refresh_by=columns)
    refresh = refresh_of_query(spark, spec, {"f": rows})
    assert (refresh.reason, refresh.columns) == ("", tuple(columns))
    written, traced = (rows.selectExpr(*texts).collect() for texts in (READ_ALIKE, refresh.expressions["f"][0]))
    for text, values, others in zip(READ_ALIKE, zip(*written, strict=True), zip(*traced, strict=True), strict=True):
        assert values == others, text
        assert len({*values}) > 1 or text in ("trunc(day, 'q')", "date_trunc('W', day)"), text


def test_a_query_that_spark_reads_in_another_way_than_the_trace_is_computed_whole(spark: SparkSession) -> None:
    sources = {"f": spark.sql("SELECT DATE'2013-01-01' AS day, 'a' AS origin")}
    for text in READ_OTHERWISE:
        for query, where in (
            (f"SELECT {text} AS k FROM f", "the query"),
            (f"WITH x (k) AS (SELECT {text} FROM f), y AS (SELECT k FROM x) SELECT k FROM y", "`x` in WITH"),
        ):
            spec = gold_query_spec(sources={"f": {"table": "silver.f"}}, query=query, refresh_by="k")
            reason = refresh_of_query(spark, spec, sources).reason
            assert reason.startswith(f"the trace may read {where} in another way than Spark: write parentheses"), text


def merge(spark: SparkSession, path: Path, random: Random, size: int) -> None:
    """Insert, update, move or delete up to `size` rows in one commit; about every fourth one is deleted."""
    rows = [
        (
            number,
            random.choice(DAYS),
            random.choice([None, "a", "b", "it's \"\\n"]),
            random.choice([None, 1, 2, 3]),
            random.random() < 0.25,
        )
        for number in random.sample(range(40), size)
    ]
    spark.createDataFrame(rows, f"{SCHEMA}, gone boolean").createOrReplaceTempView("changes")
    spark.sql(f"""
        MERGE INTO delta.`{path}` AS t USING changes AS s ON t.id = s.id
        WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET *
        WHEN NOT MATCHED THEN INSERT (id, day, origin, amount) VALUES (s.id, s.day, s.origin, s.amount)
    """).collect()


def frames(spark: SparkSession, paths: dict[str, Path], versions: dict[str, int]) -> dict[str, DataFrame]:
    return {alias: read_version(spark, path, versions[alias]) for alias, path in paths.items()}


def recomputed(
    spark: SparkSession,
    spec: GoldSpec,
    paths: dict[str, Path],
    before: dict[str, int],
    now: dict[str, int],
    table: Sequence[tuple[Any, ...]],
) -> list[tuple[Any, ...]]:
    """Return the table after a batch of these changes, as `GoldAggregate` replaces its rows."""
    sources = frames(spark, paths, now)
    refresh = refresh_of_query(spark, spec, sources)
    assert refresh.columns == spec.refresh_columns
    assert not refresh.reason
    if refresh.whole:
        return in_order(rows_of_query(spark, spec, sources))
    touched: set[str | None] = set()
    for alias in paths:
        changes = read_changes(spark, paths[alias], before[alias], now[alias])
        assert changes is not None
        values = [changes.select(F.expr(text).alias("touched")) for text in refresh.keys.get(alias, ())]
        values += [touched_by_lookup(spark, alias, lookup, changes) for lookup in refresh.lookups.get(alias, ())]
        touched |= {row[0] for each in values for row in each.select(F.col("touched").cast("string")).collect()}
    rows = touched_rows_of_query(spark, spec, sources, refresh, list(touched))
    places = [spec.query_columns.index(column) for column in refresh.columns]
    kept = [row for row in table if key([row[place] for place in places]) not in touched]
    return sorted([*kept, *map(tuple, rows.collect())], key=repr)


def key(values: list[Any]) -> str | None:
    texts = [None if value is None else str(value) for value in values]
    return texts[0] if len(texts) == 1 else json.dumps(texts, separators=(",", ":"))


def in_order(rows: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, rows.collect()), key=repr)
