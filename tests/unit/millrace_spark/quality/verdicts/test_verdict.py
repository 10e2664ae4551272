"""The verdict of a gate and its first line."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millrace.contracts.interval import Interval
from millrace.contracts.job.report import CheckResult
from millrace_spark.quality.suites import json_safe
from millrace_spark.quality.verdicts.verdict import refusal_text, warnings_of

DAY = Interval(start=datetime(2013, 1, 5, tzinfo=UTC), end=datetime(2013, 1, 6, tzinfo=UTC))
ROW_COUNT = "expect_table_row_count_to_be_between()"
NOT_NULL = "expect_column_values_to_not_be_null(model)"


def check(rule: str, *, passed: bool = False, action: str = "fail", **found: Any) -> CheckResult:
    return CheckResult(rule=rule, action=action, passed=passed, **found)


def test_a_failed_warning_does_not_block_and_is_reported() -> None:
    assert refusal_text("silver.planes", 1, [], None, DAY) == ""
    checks = [check(NOT_NULL, action="warn", unexpected_rows=3)]
    assert refusal_text("silver.planes", 4, checks, 3, DAY) == ""
    assert warnings_of("silver.planes", 4, checks) == (f"silver.planes version 4: {NOT_NULL} is failed by 3 rows",)


def test_a_refusal_names_the_rule_the_failure_where_readers_stay_and_what_to_do() -> None:
    failed = check(ROW_COUNT, expected={"min_value": 1}, observed=0, reason="an empty day means the feed is broken")
    assert refusal_text("silver.flights", 7, [check(NOT_NULL, passed=True), failed], 6, DAY) == (
        "silver.flights version 7 refused: expect_table_row_count_to_be_between(min_value=1) observed 0 "
        "(an empty day means the feed is broken); readers stay on version 6\n"
        "Fix the data or the rule, then run the table again: `lakehouse run --table silver.flights --interval "
        "2013-01-05`, or in Airflow clear the task that writes it, with its downstream tasks."
    )


def test_rows_samples_arguments_and_further_failures_are_in_the_first_line() -> None:
    checks = [
        check(
            "expect_column_values_to_be_between(price)", expected={"max_value": 10}, unexpected_rows=2, samples=("1", 7)
        ),
        check("expect_column_to_exist(wings)"),
        check(NOT_NULL, action="warn"),
    ]
    line = refusal_text("gold.fleet", 2, checks, 1, DAY)
    assert (
        "expect_column_values_to_be_between(price, max_value=10) is failed by 2 rows, such as 1, 7; and 1 more" in line
    )
    assert line.count("\n") == 1, "what to do stands below"
    for failed, said in (
        (check(NOT_NULL), f"{NOT_NULL} failed; readers have no certified version yet\n"),
        (check(NOT_NULL, error="there is no column model"), "could not be checked: there is no column model"),
        (check(NOT_NULL, unexpected_rows=1, against="silver.a version 4"), "by 1 row, against silver.a version 4; "),
    ):
        assert said in refusal_text("gold.fleet", 2, [failed], None, DAY)


def test_the_most_severe_failure_comes_first_however_the_spec_orders_them() -> None:
    checks = [check(NOT_NULL, severity="warning", unexpected_rows=1), check(ROW_COUNT, severity="critical", observed=0)]
    assert refusal_text("gold.fleet", 2, checks, 1, DAY).startswith(
        f"gold.fleet version 2 refused: {ROW_COUNT} observed"
    )


def test_a_warning_names_its_severity_unless_that_is_warning() -> None:
    checks = [check(NOT_NULL, action="warn", severity=severity) for severity in ("info", "warning", "critical")]
    assert refusal_text("gold.fleet", 2, checks, 1, DAY) == ""
    assert warnings_of("gold.fleet", 2, checks) == (
        f"critical: gold.fleet version 2: {NOT_NULL} failed",
        f"gold.fleet version 2: {NOT_NULL} failed",
        f"info: gold.fleet version 2: {NOT_NULL} failed",
    )


def test_a_rule_that_was_not_evaluated_is_reported_and_refuses_nothing() -> None:
    checks = [check(ROW_COUNT, passed=True, not_judged="1 of 7 versions are known")]
    assert refusal_text("gold.fleet", 2, checks, 1, DAY) == ""
    assert warnings_of("gold.fleet", 2, checks) == (
        f"gold.fleet version 2: {ROW_COUNT} was not checked: 1 of 7 versions are known",
    )


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@given(value=VALUES)
def test_any_value_reads_back_as_it_was_written(value: Any) -> None:
    safe = json_safe(value)
    assert json.loads(json.dumps(safe, allow_nan=False)) == safe
    assert json_safe(safe) == safe


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        (True, True),
        (np.int64(5), 5),
        (np.array([1.5, math.inf]), [1.5, "inf"]),
        (np.bool_(False), False),
        ({"a": (1, Decimal("1.50"))}, {"a": [1, "1.50"]}),
        (datetime(2013, 1, 1, 5, tzinfo=UTC), "2013-01-01T05:00:00+00:00"),
        (date(2013, 1, 1), "2013-01-01"),
        (time(5, 15), "05:15:00"),
        (b"\x00\xff", "00ff"),
        (-math.inf, "-inf"),
    ],
)
def test_each_kind_of_value_becomes_what_json_has_for_it(value: Any, safe: Any) -> None:
    assert json_safe(value) == safe
    assert type(json_safe(value)) is type(safe)
