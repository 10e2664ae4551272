"""Rules in SQL: what a condition says of NULL, of rows and of a version, and which errors it has."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.spec.expectation import Action, Expectation
from millrace.errors import SpecError
from millrace_spark.quality.rules.row_rules import REFUSALS, refusals
from millrace_spark.quality.suites import check_rules
from millrace_spark.transforms.refusals import with_refusals

AMOUNT = "amount >= 0 OR kind = 'refund'"


def rule(condition: str, action: Action = Action.FAIL, **arguments: Any) -> Expectation:
    return Expectation(name="expect_sql", arguments={"condition": condition, **arguments}, action=action)


@pytest.fixture(scope="module")
def orders(spark: SparkSession) -> DataFrame:
    """Six orders: one fails AMOUNT, and two have no answer to it."""
    rows = (
        "('a', 5, 'sale'), ('b', -1, 'refund'), ('c', -2, 'sale'), ('d', null, 'sale'), ('ë', -3, null), ('f', 0, '')"
    )
    return spark.sql(f"SELECT * FROM VALUES {rows} AS orders (id, amount, kind)")


def test_a_row_is_refused_only_where_the_condition_is_false(orders: DataFrame) -> None:
    for action in (Action.QUARANTINE, Action.DROP):
        rules = [rule(AMOUNT, action)]
        checked = with_refusals(orders, rules, refusals(rules))
        refused = [row for row in checked.collect() if row[REFUSALS]]
        assert [row.id for row in refused] == ["c"]
        assert refused[0][REFUSALS][0].asDict() == {
            "rule": f"expect_sql({AMOUNT})",
            "action": action.value,
            "reason": "",
        }


def test_a_version_fails_by_its_rows_with_samples_of_the_columns_that_the_condition_names(orders: DataFrame) -> None:
    failed, whole, tolerant, strict = check_rules(
        orders,
        [
            rule(AMOUNT),
            rule("amount IS NULL OR amount > -9", Action.WARN),
            rule(AMOUNT, mostly=0.75),
            rule(AMOUNT, mostly=0.76),
        ],
    )[0]
    assert (failed.passed, failed.unexpected_rows, failed.error) == (False, 1, "")
    assert failed.samples == ('{"amount":-2,"kind":"sale"}',)
    assert (failed.rule, failed.expected) == (f"expect_sql({AMOUNT})", {})
    assert (whole.passed, whole.unexpected_rows) == (True, 0)
    # Two of the six rows have no answer: the share is that of the other four.
    assert [tolerant.passed, strict.passed] == [True, False]


def test_a_condition_with_an_error_is_blamed_alone(orders: DataFrame) -> None:
    causes = {
        "amuont > 0": "amuont",
        "amount": "it is not a condition: its value is int",
        "amount >": "PARSE_SYNTAX_ERROR",
        "CAST(kind AS INT) > 0": "CAST_INVALID_INPUT",
    }
    *wrong, sound = check_rules(orders, [*map(rule, causes), rule(AMOUNT)])[0]
    for check, cause in zip(wrong, causes.values(), strict=True):
        assert not check.passed
        assert cause in check.error
        assert "stacktrace" not in check.error
    assert (sound.unexpected_rows, sound.error) == (1, "")


@pytest.mark.parametrize(("condition", "cause"), [("amount", "its value is int"), ("amount >", "PARSE_SYNTAX_ERROR")])
def test_a_wrong_condition_on_rows_is_a_wrong_spec(orders: DataFrame, condition: str, cause: str) -> None:
    rules = [rule(condition, Action.QUARANTINE), rule(AMOUNT, Action.DROP)]
    with pytest.raises(SpecError, match=cause) as error:
        with_refusals(orders, rules, refusals(rules))
    assert str(error.value).startswith(f"expect_sql({condition}): ")


def test_a_field_of_a_struct_is_shown_with_its_column(orders: DataFrame) -> None:
    df = orders.selectExpr("struct(amount, kind) AS sale")
    (check,) = check_rules(df, [rule("sale.amount > -3")])[0]
    assert (check.unexpected_rows, check.samples) == (1, ('{"sale":{"amount":-3,"kind":null}}',))


def test_an_empty_table_passes(orders: DataFrame) -> None:
    (check,) = check_rules(orders.limit(0), [rule(AMOUNT)])[0]
    assert (check.passed, check.unexpected_rows) == (True, 0)
