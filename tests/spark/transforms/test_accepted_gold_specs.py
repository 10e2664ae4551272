"""For each spec whose groups are traced, whatever it states, the groups that changes touch give the groups of all rows.

Specs and changes are random. The tables are small, so that most values meet values of their own kind.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from functools import cache, reduce
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import GoldSpec
from millrace.sql.query.refresh import refresh_of
from millrace_spark.layers.gold.query import refresh_of_table, rows_of_query, touched_rows_of_query
from millrace_spark.transforms.touched_rows import is_touched
from tests.support.documents.specs import gold_spec, silver_spec
from tests.support.examples import few_or_many, settings_for

COLUMNS = {"id": "int", "day": "date", "at": "timestamp", "code": "string", "n": "int"}
SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
SPECS = {
    table: silver_spec(
        table=table, keys=["id"], sequence_by=["at"], columns={n: {"type": k} for n, k in COLUMNS.items()}
    )
    for table in ("silver.a", "silver.b", "silver.c")
}
OWN = (
    "day", "at", "code", "n", "to_date(at)", "cast(at as date)", "date_trunc('month', at)", "trunc(day, 'MM')",
    "date_trunc('week', at)", "year(at)", "year(day)", "upper(code)", "n % 2", "date_trunc('day', day)",
)  # fmt: skip
JOINS = (
    "{s}.day = {a}.day", "{s}.day <=> {a}.day", "{s}.code = {a}.code", "{s}.n = {a}.n", "{s}.at = {a}.at",
    "to_date({s}.at) = {a}.day", "{a}.day = date_trunc('day', {s}.at)", "upper({s}.code) = upper({a}.code)",
    "{s}.n > {a}.n", "{s}.n <=> {a}.n % 2", "({s}.n = {a}.n or {s}.code = 'x')",
)  # fmt: skip
MEASURES = {"rows": "count(*)", "total": "sum(a.n)", "last_at": "max(a.at)"}

Row = tuple[int, date | None, datetime | None, str | None, int | None]


def of_alias(expression: str, alias: str) -> str:
    for column in COLUMNS:
        expression = " ".join(
            f"{alias}.{word}" if word == column else word
            for word in expression.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
        )
    return expression


def random_spec(random: Random) -> GoldSpec:
    aliases = ["a", "b", "c"][: random.choice([1, 2, 2, 2, 3])]
    sources: dict[str, Any] = {"a": {"table": "silver.a"}}
    for place, alias in enumerate(aliases[1:], 1):
        parts = [text.format(s=alias, a=random.choice(aliases[:place])) for text in random.sample(JOINS, 2)]
        sources[alias] = {
            "table": f"silver.{alias}",
            "join": random.choice(["inner", "left"]),
            "on": " and ".join(parts),
        }
    for alias in aliases:
        if random.random() < 0.3:
            sources[alias]["where"] = "n > 0"
    value = random.choice(OWN)
    group = of_alias(value, random.choice(aliases))
    others = {"kind": of_alias(random.choice(OWN), random.choice(aliases))} if random.random() < 0.5 else {}
    return gold_spec(
        sources=sources,
        refresh_by="value",
        refresh_from={alias: random.choice([value, value, random.choice(OWN)]) for alias in aliases},
        group_by={"value": group, **others},
        measures=MEASURES,
    )


@cache
def accepted_spec(seed: int) -> GoldSpec:
    random = Random(seed)
    while True:
        spec = random_spec(random)
        if set(refresh_of(spec, {alias: tuple(COLUMNS) for alias in spec.sources}).expressions) == set(spec.sources):
            return spec


def random_row(random: Random, number: int) -> Row:
    day = random.choice([None, *(date(2012, 12, 29 + n) for n in range(3)), date(2013, 1, 1), date(1969, 12, 31)])
    base = random.choice([day, date(2013, 1, 1)])
    at = base and datetime(base.year, base.month, base.day, random.choice([0, 0, 23]), tzinfo=UTC)
    return number, day, at, random.choice([None, "x", "X", "y"]), random.choice([None, 0, 1, 2])


def change(random: Random, rows: dict[int, Row]) -> list[Row]:
    """Insert, update or delete some rows; return their values before and after."""
    images = []
    for number in random.sample(range(12), random.choice([0, 1, 2])):
        images += [rows.pop(number)] if number in rows else []
        if random.random() < 0.7:
            rows[number] = random_row(random, number)
            images.append(rows[number])
    return images


@few_or_many(6, 300)
def test_the_touched_groups_of_an_accepted_spec_give_the_groups_of_all_rows(spark: SparkSession, examples: int) -> None:
    seen = Counter[str]()

    def frame(rows: list[Row]) -> DataFrame:
        return spark.createDataFrame(rows, SCHEMA)

    @settings_for(examples)
    @given(seed=st.integers(0, 2**32))
    def holds(seed: int) -> None:
        spec, random = accepted_spec(seed), Random(seed)
        tables = {alias: {n: random_row(random, n) for n in range(random.randint(0, 12))} for alias in spec.sources}

        def frames() -> dict[str, DataFrame]:
            return {alias: frame(list(rows.values())) for alias, rows in tables.items()}

        refresh = refresh_of_table(spark, spec, frames())
        if refresh.reason:
            seen["computed whole"] += 1
            return
        stored = rows_of_query(spark, spec, frames())
        schema, rows = stored.schema, stored.collect()
        before = {alias: dict(table) for alias, table in tables.items()}
        images = {alias: change(random, table) for alias, table in tables.items()}
        if random.random() < 0.2:  # the sources are restored
            tables = before
        values = [
            frame(changed).select(F.expr(refresh.keys[alias][0]).cast("string")) for alias, changed in images.items()
        ]
        touched = sorted({row[0] for row in reduce(DataFrame.union, values).collect()}, key=repr)
        kept = spark.createDataFrame(rows, schema).where(~F.coalesce(is_touched("value", touched), F.lit(False)))
        computed = touched_rows_of_query(spark, spec, frames(), refresh, touched)
        sides = [side.withColumn("is_kept", F.lit(is_kept)) for side, is_kept in ((kept, True), (computed, False))]
        found = sides[0].unionByName(sides[1]).collect()
        expected = rows_of_query(spark, spec, frames()).collect()
        assert Counter(row[:-1] for row in found) == Counter(map(tuple, expected)), (spec, images)
        seen.update(
            {
                "with a join": len(spec.sources) > 1,
                "states another value": any(
                    text not in refresh.keys[alias] for alias, text in spec.refresh_from.items()
                ),
                "some groups stay": 0 < sum(row["is_kept"] for row in found) < len(expected),
            }
        )

    holds()
    assert seen["with a join"]
    assert seen["states another value"]
    assert seen["computed whole"] < max(seen["with a join"], 2)
    assert seen["some groups stay"]
