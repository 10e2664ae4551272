"""The rule that a query over a version returns no rows."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.suites import check_rules
from tests.support.quality.compared_version import compared_version


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES ('a', 1, 'x'), ('b', 2, 'y'), ('ç', null, 'x') AS o (id, amount, customer)")


@pytest.fixture(scope="module")
def customers(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES ('x', true), ('y', false) AS c (customer, is_active)")


def check(orders: DataFrame, *queries: str, customers: DataFrame | None = None) -> tuple[CheckResult, ...]:
    frames = {} if customers is None else {("silver.customers", 4): customers}
    others = {"silver.customers": None if customers is None else 4}
    checked = compared_version(frames, facts={"in_table": 3}, others=others)
    rules = [
        Expectation(name="expect_query_to_return_no_rows", arguments={"query": query}, action="fail")
        for query in queries
    ]
    return check_rules(orders, rules, checked)[0]


def test_the_rows_of_a_query_are_counted_and_some_are_shown(orders: DataFrame) -> None:
    none, some, qualified = check(
        orders,
        "SELECT id FROM {table} WHERE amount > 9",
        "SELECT id, amount FROM {table} WHERE amount IS NULL OR id RLIKE '^[ab]{1}$'",
        "SELECT * FROM {table} QUALIFY count(*) OVER (PARTITION BY customer) > 1;",
    )
    assert (none.passed, none.unexpected_rows, none.samples, none.error) == (True, 0, (), "")
    assert (some.passed, some.unexpected_rows) == (False, 3)
    assert set(some.samples) == {
        f'{{"id":"{id_}","amount":{amount}}}' for id_, amount in (("a", 1), ("b", 2), ("ç", "null"))
    }
    assert some.rule.startswith("expect_query_to_return_no_rows(SELECT id, amount FROM {table}")
    assert some.expected == {}
    assert (qualified.passed, qualified.unexpected_rows, qualified.error) == (False, 2, "")
    assert '{"id":"a","amount":1,"customer":"x"}' in qualified.samples


def test_many_rows_give_five_samples(spark: SparkSession) -> None:
    [result] = check(spark.range(1000).toDF("n"), "SELECT n, n FROM {table} UNION ALL SELECT n, 0 FROM {table}")
    assert (result.unexpected_rows, len(result.samples)) == (2000, 5)


def test_another_table_is_read_at_its_certified_version_and_no_view_is_left(
    spark: SparkSession, orders: DataFrame, customers: DataFrame
) -> None:
    query = "SELECT id FROM {table} JOIN {silver.customers} USING (customer) WHERE NOT is_active"
    [result] = check(orders, query, customers=customers)
    assert (result.unexpected_rows, result.samples) == (1, ('{"id":"b"}',))
    assert result.against == "silver.customers version 4"
    assert "silver.customers has no certified version yet" in check(orders, query)[0].error
    assert [table.name for table in spark.catalog.listTables() if table.name.startswith("_checked")] == []


def test_a_query_with_an_error_says_so(orders: DataFrame) -> None:
    causes = {
        "DROP VIEW {table}": "it is not one SELECT",
        "SELECT 1 FROM {table}; SELECT 2": "it is not one SELECT",
        "SELECT nothing FROM {table}": "nothing",
        "SELECT CAST(id AS INT) FROM {table}": "CAST_INVALID_INPUT",
    }
    for result, cause in zip(check(orders, *causes), causes.values(), strict=True):
        assert not result.passed
        assert cause in result.error
