"""Gold groups against a model of plain loops: recomputing the touched groups gives the groups of all rows."""

from __future__ import annotations

from collections import defaultdict
from datetime import date
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from include.contracts.spec.table_spec import GoldSpec, parse_spec
from spark_jobs.transforms.groups import aggregate
from tests.support.documents.measures import READING_A_RESULT
from tests.support.documents.specs import gold_document
from tests.support.examples import few_or_many, settings_for

DAYS = [None, *(date(2013, 1, day) for day in range(1, 13))]
UNCHANGED_DAY = date(2013, 2, 1)
SCHEMA = "day date, product string, value int, is_cancelled boolean"

Row = tuple[date | None, str | None, int | None, bool]
Group = tuple[date | None, str | None]


def gold_spec(join: str) -> GoldSpec:
    spec = parse_spec(
        {
            "table": "gold.sales",
            "description": "Sales of a day by how high their price is.",
            "owner": "sales",
            "classification": "internal",
            "sources": {
                "o": {"table": "silver.orders", "where": "not is_cancelled"},
                "p": {
                    "table": "silver.prices",
                    "where": "value <> 0",
                    "join": join,
                    "on": "p.day <=> o.day and p.product = o.product",
                },
            },
            "refresh_by": "day",
            "refresh_from": {"o": "day", "p": "day"},
            "group_by": {"day": "o.day", "band": "case when p.value > 2 then 'high' when p.value <= 2 then 'low' end"},
            "measures": {"orders": "count(*)", "priced": "count(p.value)", "total": "sum(o.value * p.value)"},
        }
    )
    assert isinstance(spec, GoldSpec)
    return spec


def change(random: Random, rows: dict[int, Row], size: int) -> set[str | None]:
    """Insert, update or delete up to `size` rows; return the days that they had before or have now, as text."""
    touched: set[str | None] = set()
    for number in random.sample(range(1, 61), size):
        days = [rows.pop(number)[0]] if number in rows else []
        if not days or random.random() < 0.6:
            values = random.choice(DAYS), random.choice([None, "a", "b"]), random.choice([None, 0, 1, 2, 3])
            rows[number] = (*values, random.random() < 0.2)
            days.append(values[0])
        touched.update(day and day.isoformat() for day in days)
    return touched


def expected(orders: dict[int, Row], prices: dict[int, Row], join: str) -> dict[Group, tuple[int | None, ...]]:
    groups: dict[Group, list[tuple[int | None, int | None]]] = defaultdict(list)
    for day, product, quantity, is_cancelled in orders.values():
        matches: list[int | None] = [
            price for at, name, price, _ in prices.values() if price and name and (at, name) == (day, product)
        ]
        for price in [] if is_cancelled else matches or [None] * (join == "left"):
            groups[day, price and ("high" if price > 2 else "low")].append((quantity, price))
    return {group: measures(rows) for group, rows in groups.items()}


def measures(rows: list[tuple[int | None, int | None]]) -> tuple[int | None, ...]:
    products = [quantity * price for quantity, price in rows if quantity is not None and price is not None]
    priced = sum(price is not None for _, price in rows)
    return len(rows), priced, sum(products) if products else None


@pytest.mark.parametrize("join", ["inner", "left"])
@few_or_many(1, 20)
def test_recomputing_the_touched_groups_gives_the_groups_of_all_rows(
    spark: SparkSession, join: str, examples: int
) -> None:
    spec = gold_spec(join)

    def groups(orders: dict[int, Row], prices: dict[int, Row], touched: set[str | None] | None) -> dict[Group, object]:
        frames = {
            alias: spark.createDataFrame(list(rows.values()), SCHEMA) for alias, rows in (("o", orders), ("p", prices))
        }
        rows = aggregate(frames, spec, None if touched is None else list(touched)).collect()
        result = {(row["day"], row["band"]): (row["orders"], row["priced"], row["total"]) for row in rows}
        assert len(result) == len(rows)
        return result

    @settings_for(examples)
    @given(seed=st.integers(0, 2**32))
    def holds(seed: int) -> None:
        random = Random(seed)
        # Two days have a group in every example; nothing changes one of them later.
        orders: dict[int, Row] = {0: (None, "a", 1, False), -1: (UNCHANGED_DAY, "a", 1, False)}
        prices: dict[int, Row] = {0: (None, "a", 2, False), -1: (UNCHANGED_DAY, "a", 2, False)}
        table: dict[Group, object] = {}
        for orders_changed, prices_changed in ((60, 30), (3, 0), (0, 3), (2, 2), (0, 0)):
            touched = change(random, orders, orders_changed) | change(random, prices, prices_changed)
            touched |= set() if table else {None, UNCHANGED_DAY.isoformat()}
            recomputed = groups(orders, prices, touched)
            assert {day and day.isoformat() for day, _ in recomputed} <= touched
            untouched = {key: row for key, row in table.items() if (key[0] and key[0].isoformat()) not in touched}
            assert bool(untouched) == bool(table), "every later batch leaves some groups alone"
            table = untouched | recomputed
            assert table == expected(orders, prices, join)
        assert None in {day for day, _ in table}, "rows without a day are a group"
        assert groups(orders, prices, None) == table

    holds()


@pytest.mark.parametrize("measure", READING_A_RESULT)
def test_spark_refuses_a_measure_within_an_aggregate_or_a_window(spark: SparkSession, measure: str) -> None:
    spec = parse_spec(gold_document(measures={"orders": "count(*)", "m": measure}))
    assert isinstance(spec, GoldSpec)
    orders = spark.sql("SELECT date '2013-01-01' AS day, 'a' AS order_id, 1 AS amount")
    with pytest.raises(AnalysisException, match="LATERAL_COLUMN_ALIAS_IN_"):
        _ = aggregate({"o": orders}, spec, None).columns
    plain = parse_spec(gold_document(measures={"orders": "count(*)", "m": "orders + sum(o.amount)"}))
    assert isinstance(plain, GoldSpec)
    assert aggregate({"o": orders}, plain, None).columns == ["day", "orders", "m"]
