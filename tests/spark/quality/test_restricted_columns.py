"""Rules on restricted columns: they fail as others do, and show no value."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RESTRICTED, RestrictedColumns
from millrace.contracts.spec.expectation import Action, Expectation
from millrace_spark.quality.suites import check_rules
from millrace_spark.quality.verdicts.restricted_rules import NO_RESTRICTED_RULES, RestrictedRules
from tests.support.quality.compared_version import compared_version

SHOWN, HIDDEN = "Lisbon", ("Quimby", "7341", "1951-07-23")


def restricted(*names: str) -> RestrictedColumns:
    return RestrictedColumns(frozenset(names), frozenset({"city", "name", "salary", "born"}), others=True)


GREATEST = "SELECT max(salary) AS n FROM {table}"
PEOPLE = RestrictedRules(restricted("name", "salary", "born"), lambda _: restricted("name", "salary"))


@pytest.fixture(scope="module")
def people(spark: SparkSession) -> DataFrame:
    values = {"city": "'Lisbon'", "name": "'Quimby'", "salary": "7341", "born": "DATE'1951-07-23'"}
    return spark.range(2).selectExpr(*(f"IF(id < 9, {value}, NULL) AS {name}" for name, value in values.items()))


def rule(name: str, **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=Action.FAIL)


def of_columns(*columns: str) -> list[Expectation]:
    """Rules on a text and rules on a number or a day, all of which fail."""
    text, other = columns[0], columns[-1]
    bound = "1900-01-01" if other == "born" else 1
    return [
        rule("expect_column_values_to_be_in_set", column=text, value_set=["x"]),
        rule("expect_column_distinct_values_to_be_in_set", column=text, value_set=["x"]),
        rule("expect_column_most_common_value_to_be_in_set", column=text, value_set=["x"]),
        rule("expect_column_values_to_be_unique", column=text),
        rule("expect_column_max_to_be_between", column=other, max_value=bound),
        rule("expect_column_values_to_be_between", column=other, max_value=bound),
        rule("expect_table_to_be_fresh", column="born", max_age="1 days"),
        rule("expect_column_distribution_to_be_stable", column=text, max_psi=0.0),
        rule("expect_column_values_to_exist_in_other_table", column=text, other_table="silver.o", other_column="city"),
    ]


def checked(people: DataFrame, rules: list[Expectation], of: RestrictedRules) -> tuple[CheckResult, ...]:
    earlier = people.selectExpr("name AS city", "city AS name", "salary", "born").limit(1)
    version = compared_version(
        {("silver.o", 4): earlier.limit(0), ("silver.things", 4): earlier},
        certified=4,
        others={"silver.o": 4},
        sources={"silver.o": 4},
        facts={"in_table": 2},
        interval_end=datetime(2013, 1, 1, tzinfo=UTC),
        rows_of=lambda _, at: 1 if at == 4 else 2,
    )
    return check_rules(people, rules, version, None, of)[0]


def text_of(checks: tuple[CheckResult, ...]) -> str:
    return json.dumps([check.model_dump(mode="json") for check in checks])


def test_results_on_a_restricted_column_count_and_show_no_value(people: DataFrame) -> None:
    rules = [*of_columns("name", "salary"), *of_columns("name", "born")]
    seen = text_of(checked(people, rules, NO_RESTRICTED_RULES))
    assert all(value in seen for value in HIDDEN)
    checks = checked(people, rules, PEOPLE)
    assert not any(value in text_of(checks) for value in HIDDEN)
    in_set, distinct, common, unique, greatest, between, *_ = checks
    assert [check.passed for check in checks] == [False] * len(rules)
    assert (in_set.unexpected_rows, in_set.samples) == (2, (RESTRICTED,))
    assert distinct.samples == unique.samples == between.samples == (RESTRICTED,)
    assert common.observed == greatest.observed == RESTRICTED


def test_a_neighbour_of_a_restricted_column_is_shown(people: DataFrame) -> None:
    rules = [
        rule("expect_column_values_to_be_in_set", column="city", value_set=["x"]),
        rule("expect_compound_columns_to_be_unique", column_list=["city", "name"]),
        rule("expect_column_pair_values_a_to_be_greater_than_b", column_A="city", column_B="name"),
        rule("expect_sql", condition="city = '' OR name = '' OR salary < 0"),
        rule("expect_query_to_return_no_rows", query="SELECT *, upper(name) AS big FROM {table}"),
        rule("expect_query_to_return_no_rows", query=f"SELECT t.city, o.n FROM {{table}} t, ({GREATEST}) o"),
    ]
    seen = text_of(checked(people, rules, NO_RESTRICTED_RULES))
    assert all(value in seen for value in (SHOWN, *HIDDEN, "QUIMBY"))
    checks = checked(people, rules, PEOPLE)
    assert all(SHOWN in text_of((check,)) for check in checks)
    assert not any(value in text_of(checks) for value in (*HIDDEN, "QUIMBY"))
    assert checks[1].samples == ({"city": SHOWN, "name": RESTRICTED},)
    assert checks[3].samples == ('{"city":"Lisbon","name":"(restricted)","salary":"(restricted)"}',)


def test_what_cannot_be_followed_is_not_shown(people: DataFrame) -> None:
    whole = rule("expect_query_to_return_no_rows", query="SELECT to_json(struct(*)) AS whole FROM {table}")
    pairs = "SELECT whole FROM (SELECT explode(map(city, name)) AS (city, whole) FROM {table})"
    checks = checked(people, [whole, rule("expect_query_to_return_no_rows", query=pairs)], PEOPLE)
    assert [check.samples for check in checks] == [('{"whole":"(restricted)"}',)] * 2


def test_counts_of_a_restricted_column_are_shown(people: DataFrame) -> None:
    rules = [
        rule("expect_column_unique_value_count_to_be_between", column="name", min_value=9),
        rule("expect_column_proportion_of_unique_values_to_be_between", column="name", min_value=0.9),
    ]
    assert [check.observed for check in checked(people, rules, PEOPLE)] == [1, 0.5]


def test_an_error_and_a_measure_of_a_restricted_column_show_no_value(people: DataFrame) -> None:
    error = rule("expect_sql", condition="cast(name AS int) > 0")
    measures = {"measure": "sum(salary)", "source_measure": "count(*)"}
    sums = rule("expect_table_to_reconcile_with_source", source="silver.o", **measures)
    seen = text_of(checked(people, [error, sums], NO_RESTRICTED_RULES))
    assert "Quimby" in seen
    assert "14682" in seen
    wrong, summed = checked(people, [error, sums], PEOPLE)
    assert wrong.error == "[CAST_INVALID_INPUT] (restricted)"
    assert (summed.passed, summed.observed) == (False, RESTRICTED)
