"""Rules that one pass evaluates give the results of Great Expectations, on unusual values and without rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.spec.expectation import Expectation
from millrace.contracts.spec.expectation_arguments import OWN_EXPECTATIONS
from millrace_spark.quality import suites
from millrace_spark.quality.fused.rules import COMPILERS, compile_rule
from millrace_spark.quality.suites import check_rules, json_safe
from millrace_spark.runtime.session import own_session
from tests.support.quality.odd_frames import BOUNDS, EDGES, NUMBERS, PAIRS, edge_frame, frame, rows, rule
from tests.support.quality.table_rules import table_rules
from tests.support.spark.shared_server import GENERATED_CODE

if TYPE_CHECKING:
    from tests.support.quality.plain_gx import Batches

SESSION = GENERATED_CODE

SIDES = ["min_value", "max_value"]


class Result(NamedTuple):
    """The result of a rule; a passed rule of Millrace shows no values, and Great Expectations all of a small table."""

    passed: bool
    failing: int | None
    observed: Any
    values: list[Any]


@pytest.fixture(scope="module")
def batches(spark: SparkSession) -> Iterator[Batches]:
    """Batches of interpreted queries: of the many of Great Expectations, and to compare generated code with."""
    # Great Expectations takes four seconds to import, in each process that collects tests.
    from tests.support.quality.plain_gx import batches_of_frames

    with own_session({}) as session:
        yield batches_of_frames(session)


@pytest.fixture(autouse=True)
def great_expectations_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that its results are not compared with themselves."""

    def no_rules(_df: DataFrame, rules: dict[int, Expectation]) -> dict[int, Any]:
        assert not rules, rules
        return {}

    monkeypatch.setattr(suites, "_by_great_expectations", no_rules)


def by_great_expectations(batches: Batches, df: DataFrame, rules: list[Expectation]) -> list[Result]:
    results = []
    for result in batches.results(df, rules):
        assert "raised_exception" in result.exception_info, result.exception_info
        details = result.result
        # For rules on columns it has an empty list of failing rows, for rules on values no number if none fail.
        failing = (details["unexpected_count"] or 0) if "element_count" in details else None
        values = [json_safe(value) for value in details.get("partial_unexpected_list", ()) if value is not None]
        results.append(Result(bool(result.success), failing, json_safe(details.get("observed_value")), values))
    return results


def by_one_pass(df: DataFrame, rules: list[Expectation]) -> list[Result]:
    checks, _ = check_rules(df, rules)
    assert [check.error for check in checks] == [""] * len(rules)
    return [Result(check.passed, check.unexpected_rows, check.observed, list(check.samples)) for check in checks]


def agree(ours: Result, theirs: Result) -> bool:
    if ours[:2] != theirs[:2]:
        return False
    if not all(value in theirs.values for value in ours.values) or bool(ours.values) != bool(
        theirs.values and not ours.passed
    ):
        return False
    if isinstance(ours.observed, dict) and "missing" in ours.observed:  # values of a set that do not occur
        return theirs.observed is None
    if isinstance(ours.observed, float) and isinstance(theirs.observed, float):  # the order of adding is not defined
        return math.isclose(ours.observed, theirs.observed, rel_tol=1e-12)
    return bool(ours.observed == theirs.observed)


def require_agreement(batches: Batches, df: DataFrame, rules: list[Expectation]) -> list[Result]:
    ours, theirs = by_one_pass(df, rules), by_great_expectations(batches, df, rules)
    different = [
        (rule.rule, rule.arguments, own, other)
        for rule, own, other in zip(rules, ours, theirs, strict=True)
        if not agree(own, other)
    ]
    assert not different
    return ours


@pytest.mark.slow
@settings(
    max_examples=5,
    derandomize=True,  # a new oddity of either side is for whoever looks for it, not for whoever lands something else
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],  # a failing example is small as it is; shrinking it takes minutes
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=rows(), rules=table_rules())
def test_verdicts_failing_rows_and_observed_values_are_those_of_great_expectations(
    spark: SparkSession, batches: Batches, rows: list[tuple[Any, ...]], rules: list[Expectation]
) -> None:
    require_agreement(batches, frame(spark, rows), rules)


@pytest.mark.slow
def test_every_figure_of_every_column_agrees_on_all_odd_values(spark: SparkSession, batches: Batches) -> None:
    drawn = [
        rule(f"expect_column_{figure}_to_be_between", {"column": column, "min_value": 0})
        for figure in ("min", "max", "mean", "sum")
        for column in NUMBERS
    ]
    drawn += [rule("expect_column_values_to_be_unique", {"column": column}) for column in EDGES]
    drawn += [rule("expect_compound_columns_to_be_unique", {"column_list": [*pair]}) for pair in PAIRS]
    drawn += [
        rule("expect_column_unique_value_count_to_be_between", {"column": column, "min_value": 4}) for column in EDGES
    ]
    df = edge_frame(spark).unionAll(edge_frame(spark).limit(3))
    results = require_agreement(batches, df, drawn)
    assert {result.passed for result in results} == {True, False}


def test_an_empty_table_passes_rules_on_rows_and_fails_rules_on_figures(spark: SparkSession, batches: Batches) -> None:
    drawn = [
        rule("expect_column_values_to_not_be_null", {"column": "word"}),
        rule("expect_column_values_to_be_unique", {"column": "word"}),
        *(rule(f"expect_column_{name}_to_be_between", {"column": "real", "min_value": 0}) for name in ("max", "mean")),
        rule("expect_column_sum_to_be_between", {"column": "money", "min_value": 0}),
        rule("expect_column_proportion_of_unique_values_to_be_between", {"column": "word", "min_value": 0.5}),
    ]
    results = require_agreement(batches, frame(spark, []), drawn)
    assert [result.passed for result in results] == [True, True, False, False, False, False]
    assert [result.observed for result in results[2:]] == [None, None, None, 0]


def test_every_rule_agrees_on_all_odd_values_and_at_its_bounds(spark: SparkSession, batches: Batches) -> None:
    sets = [("word", EDGES["word"]), ("word", ["a", "zz"]), ("word", ["a", None]), ("whole", EDGES["whole"])]
    sets += [("whole", [0, 7]), ("yes", [True]), ("yes", [True, False]), ("other", ["", "a", "b", "ünï", "c"])]
    drawn = [
        rule(f"expect_column_{kind}_set", {"column": column, "value_set": values})
        for kind in ("distinct_values_to_be_in", "distinct_values_to_contain", "distinct_values_to_equal")
        for column, values in sets
    ]
    # Whole numbers have every second bound, and other numbers the other ones.
    bounds_of = {**BOUNDS, **{column: BOUNDS[column][1 if column == "whole" else 0 :: 2] for column in NUMBERS}}
    # The bounds of a column take turns as the least and the greatest value, and in the next column the other way round.
    drawn += [
        rule("expect_column_values_to_be_between", {"column": column, side: bound})
        for place, (column, bounds) in enumerate(bounds_of.items())
        for bound, side in zip(bounds, cycle(SIDES[:: (-1) ** place]), strict=False)
    ]
    # The figures of the ten rows, as their bounds.
    figures = {
        "column_max": ({"column": "whole"}, 2**31 - 1),
        "column_min": ({"column": "whole"}, -(2**31)),
        "column_sum": ({"column": "whole"}, 4),
        "column_mean": ({"column": "whole"}, 4 / 6),
        "column_unique_value_count": ({"column": "word"}, 10),
        "column_proportion_of_unique_values": ({"column": "word"}, 1.0),
        "table_row_count": ({}, 10),
    }
    drawn += [
        rule(f"expect_{figure}_to_be_between", {**of, f"{side}_value": value, f"strict_{side}": is_strict})
        for figure, (of, value) in figures.items()
        for side in ("min", "max")
        for is_strict in (True, False)
    ]
    lengths = {"column": "word", "min_value": 1, "max_value": 4}
    drawn += [
        *(rule("expect_column_values_to_be_null", {"column": "yes", "mostly": mostly}) for mostly in (0.8, 0.81)),
        *(rule("expect_column_values_to_not_be_null", {"column": "yes", "mostly": mostly}) for mostly in (0.2, 0.21)),
        rule("expect_column_values_to_match_regex", {"column": "word", "regex": "^[a-z]*$"}),
        rule("expect_column_values_to_not_match_regex", {"column": "word", "regex": "^[a-z]*$"}),
        rule("expect_column_values_to_not_be_in_set", {"column": "word", "value_set": ["a", "b"]}),
        rule("expect_column_values_to_be_in_set", {"column": "word", "value_set": ["a", "b"], "mostly": 0.1}),
        *(
            rule("expect_column_value_lengths_to_be_between", {**lengths, f"strict_{side}": True})
            for side in ("min", "max")
        ),
        *(
            rule("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "word", "column_B": "other", **equal})
            for equal in ({}, {"or_equal": True})
        ),
        rule("expect_column_to_exist", {"column": "word", "column_index": 5}),
        rule("expect_column_to_exist", {"column": "word", "column_index": 6}),
        rule("expect_table_column_count_to_be_between", {"max_value": 9}),
        rule("expect_table_column_count_to_be_between", {"min_value": 10}),
        rule("expect_table_columns_to_match_set", {"column_set": ["word"], "exact_match": False}),
        rule("expect_table_columns_to_match_set", {"column_set": ["word"], "exact_match": True}),
        *(rule("expect_table_row_count_to_equal", {"value": value}) for value in (10, 11)),
        *(rule("expect_compound_columns_to_be_unique", {"column_list": ["yes", column]}) for column in ("word", "at")),
        rule("expect_column_values_to_be_unique", {"column": "yes", "mostly": 0.5}),
    ]
    results = require_agreement(batches, edge_frame(spark), drawn)
    assert {result.passed for result in results} == {True, False}
    assert {each.name for each in drawn} == COMPILERS.keys() - OWN_EXPECTATIONS


@pytest.mark.parametrize(
    "left",
    [
        rule("expect_column_max_to_be_between", {"column": "word", "min_value": "a"}),
        rule("expect_column_mean_to_be_between", {"column": "word", "min_value": 1}),
        rule("expect_column_mean_to_be_between", {"column": "real", "min_value": "soon"}),
        rule("expect_column_values_to_be_in_set", {"column": "word", "value_set": []}),
        rule("expect_column_values_to_be_between", {"column": "real", "min_value": 0, "mostly": 2}),
        rule("expect_column_values_to_be_between", {"column": "real", "least": 0}),
        rule("expect_table_row_count_to_be_between", {"min_value": 0.5}),
    ],
)
def test_a_rule_with_a_meaning_of_its_own_is_left_to_great_expectations(spark: SparkSession, left: Expectation) -> None:
    assert compile_rule(left, frame(spark, []).schema) is None


def test_moments_are_compared_in_utc_whatever_the_zone_of_the_bound(spark: SparkSession) -> None:
    df = edge_frame(spark)
    bounds = ["2013-01-01T06:00:00.000001", "2013-01-01T07:00:00.000001+01:00", "2013-01-01T06:00:00.000001Z"]
    checks, _ = check_rules(
        df, [rule("expect_column_max_to_be_between", {"column": "at", "max_value": at}) for at in bounds]
    )
    assert [check.passed for check in checks] == [True] * 3
    assert {check.observed for check in checks} == {"2013-01-01T06:00:00.000001"}


def test_a_pair_and_a_combination_are_shown_as_they_are(spark: SparkSession) -> None:
    df = frame(spark, [row(whole=1, long=2, money=Decimal("1.500")), row(whole=1, long=2), row(whole=3, long=1)])
    pair, both = check_rules(
        df,
        [
            rule("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "whole", "column_B": "long"}),
            rule("expect_compound_columns_to_be_unique", {"column_list": ["whole", "long"]}),
        ],
    )[0]
    assert (pair.unexpected_rows, pair.samples) == (2, ([1, 2],))
    assert (both.unexpected_rows, both.samples) == (2, ({"whole": 1, "long": 2},))


def row(**values: Any) -> tuple[Any, ...]:
    return tuple(values.get(column) for column in EDGES)
