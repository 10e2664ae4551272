"""The rule that a query over a version returns no rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import Expectation
from spark_jobs.quality.suites import check_rules
from spark_jobs.quality.verdicts.comparable_version import ComparableVersion

AT = datetime(2013, 1, 2, tzinfo=UTC)


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('ç', null, 'x') AS o (id, amount, customer)")


@pytest.fixture(scope="module")
def customers(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES ('x', true), ('y', false) AS c (customer, is_active)")


def check(orders: DataFrame, query: str, customers: DataFrame | None = None) -> CheckResult:
    checked = ComparableVersion(
        table="silver.orders",
        version=1,
        interval_end=AT,
        committed_at=AT,
        facts={"in_table": 3},
        past=lambda: iter(()),
        certified=None,
        others={"silver.customers": None if customers is None else 4},
        sources={},
        read=lambda table, version: {("silver.customers", 4): customers}[table, version],
        rows_of=lambda _, __: 0,
        columns_of=lambda _, __: {},
    )
    rule = Expectation(name="expect_query_to_return_no_rows", arguments={"query": query}, action="fail")
    (result,) = check_rules(orders, [rule], checked).checks
    return result


def test_a_query_without_rows_passes(orders: DataFrame) -> None:
    result = check(orders, "SELECT id FROM {table} WHERE amount > 9")
    assert (result.passed, result.unexpected_rows, result.samples, result.error) == (True, 0, (), "")


def test_a_query_may_have_qualify_and_end_with_a_semicolon(orders: DataFrame) -> None:
    query = "SELECT * FROM {table} QUALIFY count(*) OVER (PARTITION BY customer) > 1;"
    result = check(orders, query)
    assert (result.passed, result.unexpected_rows, result.error) == (False, 2, "")
    assert '{"id":"a","amount":1,"customer":"x"}' in result.samples


def test_the_rows_of_a_query_are_counted_and_some_are_shown(orders: DataFrame) -> None:
    result = check(orders, "SELECT id, amount FROM {table} WHERE amount IS NULL OR id RLIKE '^[ab]{1}$'")
    assert (result.passed, result.unexpected_rows) == (False, 3)
    assert set(result.samples) == {
        f'{{"id":"{id_}","amount":{amount}}}' for id_, amount in (("a", 1), ("b", 2), ("ç", "null"))
    }
    assert result.rule.startswith("expect_query_to_return_no_rows(SELECT id, amount FROM {table}")
    assert result.expected == {}


def test_many_rows_give_five_samples(spark: SparkSession) -> None:
    result = check(spark.range(100_000).toDF("n"), "SELECT n, n FROM {table} UNION ALL SELECT n, 0 FROM {table}")
    assert (result.unexpected_rows, len(result.samples)) == (200_000, 5)


def test_another_table_is_read_at_its_certified_version(orders: DataFrame, customers: DataFrame) -> None:
    query = "SELECT id FROM {table} JOIN {silver.customers} USING (customer) WHERE NOT is_active"
    result = check(orders, query, customers)
    assert (result.unexpected_rows, result.samples) == (1, ('{"id":"b"}',))
    assert result.against == "silver.customers version 4"
    assert "silver.customers has no certified version yet" in check(orders, query).error


def test_the_views_of_a_query_are_gone_afterwards(spark: SparkSession, orders: DataFrame) -> None:
    check(orders, "SELECT id FROM {table}")
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("_checked")] == []


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("DROP VIEW {table}", "it is not one SELECT"),
        ("SELECT 1 FROM {table}; SELECT 2", "it is not one SELECT"),
        ("SELECT nothing FROM {table}", "nothing"),
        ("SELECT CAST(id AS INT) FROM {table}", "CAST_INVALID_INPUT"),
    ],
)
def test_a_query_with_an_error_says_so(orders: DataFrame, query: str, cause: str) -> None:
    result = check(orders, query)
    assert not result.passed
    assert cause in result.error
