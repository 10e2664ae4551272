"""Expectations with errors, also in the narrower band of one that only warns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millrace.contracts.spec.expectation import Expectation
from tests.support.documents.refusals import (
    assert_rule_refused,
    only_problem,
    problem_of_gold,
    problem_of_silver,
    problems_of,
    rule,
)
from tests.support.documents.specs import bronze_document, silver_document, write_specs

NAME = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
COMPOUND = "expect_compound_columns_to_be_unique"
MEAN = "expect_column_mean_to_be_between"
GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
LEAST = "expect_column_min_to_be_between"
ROWS = "expect_table_row_count_to_be_between"
INCREASING = "expect_column_values_to_be_increasing"
UNEXPECTED = "unexpected_rows_expectation"
NEAR = "expect_table_row_count_to_be_near_median"
MEDIAN = "expect_column_median_to_be_between"
TYPE = "expect_column_type_to_be"
EQUAL = "expect_column_pair_values_to_be_equal"
REGEXES = "expect_column_values_to_match_regex_list"
STRFTIME = "expect_column_values_to_match_strftime_format"


@pytest.mark.parametrize(
    ("expectations", "key", "message", "fix"),
    [
        (rule("expect_column_values_to_be_betwen"), "", "unknown expectation", f"did you mean '{NAME}'?"),
        (rule(NAME, column="amount"), "", "needs min_value or max_value", "add `min_value"),
        (rule(NEAR, "warn", of_last=7), "", "needs min_percent or max_percent", "add"),
        (rule(NAME, min_value=1), "", "needs the argument 'column'", "add `column: ...`"),
        (rule(INCREASING, "warn", column="amount"), "", "the rows of a table have no order", "leave the rule out"),
        (rule(UNEXPECTED, "fail", unexpected_rows_query="SELECT 1"), "", "is no expectation of a spec",
         "write expect_query_to_return_no_rows: {query: SELECT ... FROM {table}}"),
        (rule("expect_table_row_count_to_equal", "drop", value=1), "action", "checks a whole table", ""),
        ([{**rule(NAME, column="amount", min_value=1)[0], "reasons": "x"}], "reasons", "unknown key",
         "did you mean 'reason'?"),
        (rule(NAME, column="amonut", min_value=1), "column", "the table has no such column", "did you mean 'amount'?"),
        (rule(COMPOUND, "fail", column_list=["order_id", "dya"]), "column_list[1]", "the table has no such column",
         "did you mean 'day'?"),
        (rule(NAME, column="amount", min=1, max_value=2), "min", "takes no such", "did you mean"),
        (rule(NAME, column="amount", min_value=1, row_condition="amount > 1"), "row_condition",
         "takes no such argument", "for a rule on some rows write expect_sql"),
        (rule(NAME, column="amount", min_value=[1]), "min_value", "a number or text", ""),
        (rule(NAME, column="amount", min_value="1"), "min_value", "compared with numbers", ""),
        (rule(NAME, column="day", min_value=2013), "min_value", "with dates or instants", ""),
        (rule(NAME, column="order_id", min_value=1), "column",
         "order_id holds text, and this rule measures numbers or dates or instants", "leave the rule out"),
        (rule(MEAN, "fail", column="day", min_value=1), "column",
         "day holds dates or instants, and this rule measures numbers", "leave the rule out"),
        (rule(GREATER, column_A="amount", column_B="order_id"), "column_B",
         "amount holds numbers, which text cannot be compared with", "name a column of numbers"),
        (rule(IN_SET, column="day", value_set=["2013-W05-4"]), f"{IN_SET}.value_set", "compared with dates or instants",
         "write it as"),
        (rule(LEAST, "fail", column="day", min_value="2013-01-31T00:00:00Z"), "min_value", "compared with dates",
         'write it as "2013-01-01"'),
        (rule(IN_SET, column="amount", value_set=[]), f"{IN_SET}.value_set", "the list is empty", ""),
        (rule(ROWS, "fail", min_value=0.5), "min_value", "compared with whole numbers", ""),
        (rule(IN_SET, column="order_id", value_set=["a", 1]), f"{IN_SET}.value_set", "compared with text", ""),
        (rule(NAME, "drop", column="amount", min_value=1, mostly=0.9), "mostly", "has no tolerance", "leave it out"),
        (rule(MEDIAN, "fail", column="amount", min_value=3, max_value=2.5), "max_value",
         "nothing lies between min_value 3 and this", "give more than 3"),
        (rule(TYPE, "fail", column="amount", type_="Integer"), "type_", "unknown value", "did you mean 'IntegerType'?"),
        (rule(EQUAL, "warn", column_A="day", column_B="day", ignore_row_if="never"), "ignore_row_if", "unknown value",
         "did you mean 'neither'?"),
        (rule(REGEXES, "warn", column="order_id", regex_list=["a", "("]), "regex_list", "not a regular expression", ""),
        (rule(STRFTIME, "warn", column="order_id", strftime_format="%D"), "strftime_format", "'D' is a bad", ""),
    ],
)  # fmt: skip
def test_each_is_named_with_its_likely_fix(tmp_path: Path, expectations: Any, key: str, message: str, fix: str) -> None:
    assert_rule_refused(tmp_path, expectations, key, message, fix)


def test_what_is_no_list_of_expectations_is_named(tmp_path: Path) -> None:
    for number, (key, expectations) in enumerate({"[0]": ["expect_column_to_exist"], "": {"x": {}}}.items()):
        problem = problem_of_silver(tmp_path / str(number), expectations=expectations)
        assert problem.key == f"expectations{key}"
        assert problem.message == f"a {'mapping' if key else 'list'} is needed here"


@pytest.mark.parametrize("regex", ["^{.*}$", "(?P<n>a)", "(a)?(?(1)b|c)"])
def test_a_regular_expression_of_python_alone_is_named(tmp_path: Path, regex: str) -> None:
    expectations = rule("expect_column_values_to_match_regex", column="order_id", regex=regex)
    problem = problem_of_silver(tmp_path, expectations=expectations)
    assert problem.message.startswith("not a regular expression: ")
    assert "Spark" in problem.message


def test_regular_expressions_of_spark_and_columns_that_millrace_adds_are_accepted(tmp_path: Path) -> None:
    expectations = rule("expect_column_values_to_be_null", "warn", column="_rescued")
    for regex in ("a{2,}b{1}", r"\{x\}", "[^{]", r"\p{Lu}{2}", r"\x{41}", r"\Q{\E", "(?<n>a)", "(?i)a*+"):
        expectations += rule("expect_column_values_to_match_regex", column="order_id", regex=regex)
    assert problems_of(write_specs(tmp_path, bronze_document(expectations=expectations))) == ()


@pytest.mark.parametrize("values", [["true"], [1], [0.5]])
def test_a_boolean_is_compared_with_booleans(tmp_path: Path, values: list[Any]) -> None:
    columns = {**bronze_document()["columns"], "paid": {"type": "boolean"}}
    expectations = rule(IN_SET, column="paid", value_set=values)
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=columns, expectations=expectations)))
    assert (problem.message, problem.fix) == ("this is compared with booleans", "write true or false, without quotes")


def test_gold_is_judged_by_its_groups_and_measures(tmp_path: Path) -> None:
    expectations = rule(LEAST, "fail", column="order", min_value=1)
    assert problem_of_gold(tmp_path, expectations=expectations).fix == "did you mean 'orders'?"


BETWEEN = "expect_column_values_to_be_between"


def banded(name: str, warn: Any, action: str = "fail", **arguments: Any) -> list[dict[str, Any]]:
    return [{name: arguments, "action": action, "warn": warn}]


def test_narrower_bands_are_accepted(tmp_path: Path) -> None:
    rules = [
        banded(BETWEEN, {"min_value": 0, "max_value": 5}, column="amount", min_value=0, max_value=9),
        banded(BETWEEN, {"min_value": 1}, column="amount", max_value=9),
        banded(BETWEEN, {"mostly": 0.9}, column="amount", max_value=9, mostly=0.5),
        banded(BETWEEN, {"max_value": "2013-01-05"}, column="day", max_value="2013-01-06"),
        banded("expect_table_to_be_fresh", {"max_age": "90 minutes"}, column="event_at", max_age="2 hours"),
        banded("expect_column_distribution_to_be_stable", {"max_psi": 0.1}, column="amount", max_psi=0.25),
    ]
    write_specs(tmp_path, bronze_document(), silver_document(expectations=[rule for (rule,) in rules]))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("expectations", "key", "message", "fix"),
    [
        (banded(BETWEEN, {"max_value": 10}, column="amount", max_value=9), "warn.max_value", "must be", "give 9 or"),
        (banded(BETWEEN, {"min_value": "2013-01-01"}, column="day", min_value="2013-01-02"), "warn.min_value",
         "must be within", "give '2013-01-02' or more"),
        (banded("expect_table_to_be_fresh", {"max_age": "2 days"}, column="event_at", max_age="36 hours"),
         "warn.max_age", "must be within", "give '36 hours' or less"),
        (banded(BETWEEN, {"column": ["day"]}, column="amount", max_value=9), "warn.column", "only bounds", "known"),
        (banded("expect_column_to_exist", {"max_value": 1}, column="amount"), "warn.max_value", "states only bounds",
         "leave the band out"),
        (banded(BETWEEN, {"max_value": "5"}, column="amount", max_value=9), "warn.max_value", "with numbers", "write"),
        (banded(BETWEEN, {"mostly": 2}, column="amount", max_value=9), "warn.mostly", "at most 1", ""),
        (banded(BETWEEN, {"max_value": 5}, "warn", column="amount", max_value=9), "warn",
         "needs a rule with action: fail, and this rule's action is warn", ""),
        ([{BETWEEN: {"column": "amount", "max_value": 9}, "action": "drop", "severity": "info"}], "severity",
         "severity is for warn and fail", ""),
        ([{BETWEEN: {"column": "amount", "max_value": 9}, "action": "warn", "severity": "warn"}], "severity",
         "unknown value", "did you mean 'warning'?"),
    ],
)  # fmt: skip
def test_a_wrong_band_or_severity_is_named_with_its_likely_fix(
    tmp_path: Path, expectations: Any, key: str, message: str, fix: str
) -> None:
    assert_rule_refused(tmp_path, expectations, key, message, fix)


def test_a_band_is_the_same_rule_with_its_own_bounds_that_warns() -> None:
    rule = Expectation.model_validate(
        {BETWEEN: {"column": "a", "min_value": 0, "max_value": 9}, "action": "fail", "warn": {"max_value": 5}}
    )
    outer, inner = rule.bands
    assert (outer.action.value, outer.arguments) == ("fail", {"column": "a", "min_value": 0, "max_value": 9})
    assert (inner.action.value, inner.arguments) == ("warn", {"column": "a", "min_value": 0, "max_value": 5})
    assert not outer.warn
    assert not inner.warn
    for action, severity in (("fail", "critical"), ("warn", "warning")):
        alone = Expectation.model_validate({BETWEEN: {"column": "a", "max_value": 9}, "action": action})
        assert (alone.stated_severity.value, len(alone.bands)) == (severity, 1)
    told = Expectation.model_validate({BETWEEN: {"column": "a", "max_value": 9}, "action": "fail", "severity": "info"})
    assert told.stated_severity.value == "info", "unless it is stated it follows the action"
