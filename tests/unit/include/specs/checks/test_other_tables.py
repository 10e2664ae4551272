"""Expectations that compare a table with its past, its interval or other tables, and their errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import problem_of_silver, problems_of, rule
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs

EXIST = "expect_column_values_to_exist_in_other_table"
TOGETHER = "expect_compound_columns_to_exist_in_other_table"
FRESH = "expect_table_to_be_fresh"
NEAR = "expect_table_row_count_to_be_near_median"
STABLE = "expect_table_columns_to_be_stable"
RECONCILE = "expect_table_to_reconcile_with_source"
MEASURES = {"measure": "count(*)", "source_measure": "count(DISTINCT order_id)"}


@pytest.mark.parametrize(
    "expectations",
    [
        rule(FRESH, "fail", column="event_at", max_age="36 hours"),
        rule(FRESH, "fail", column="day", max_age="2 days", as_of="commit"),
        rule(NEAR, "warn", of_last=7, min_percent=50, max_percent=200),
        rule(NEAR, "warn", of_last=7, min_percent=50, rows="applied"),
        rule(EXIST, "fail", column="order_id", other_table="bronze.orders", other_column="order_id", mostly=0.9),
        rule(
            TOGETHER,
            "fail",
            column_list=["order_id", "day"],
            other_table="bronze.orders",
            other_column_list=["order_id", "day"],
        ),
        rule(STABLE, "fail"),
        rule(STABLE, "fail", allow=["added"]),
        rule("expect_column_null_share_to_be_stable", "warn", column="amount", max_change=0.02),
        rule("expect_column_distribution_to_be_stable", "warn", column="amount", max_psi=0.25),
        rule(RECONCILE, "fail", source="bronze.orders", **MEASURES, tolerance_percent=0.5),
    ],
)
def test_a_comparison_with_its_arguments_is_accepted(tmp_path: Path, expectations: Any) -> None:
    write_specs(tmp_path, bronze_document(), silver_document(expectations=expectations))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("expectations", "key", "message", "fix"),
    [
        (rule(FRESH, "fail", column="event_at", max_age="1 week"), f"{FRESH}.max_age", "an age is", "write it as"),
        (rule(FRESH, "fail", column="amount", max_age="1 days"), f"{FRESH}.column", "is int", "name one of day, event"),
        (
            rule(FRESH, "fail", column="event_at", max_age="1 days", as_of="now"),
            f"{FRESH}.as_of",
            "unknown value",
            "known are interval_end, commit",
        ),
        (rule(NEAR, "warn", of_last=0, min_percent=5), f"{NEAR}.of_last", "at least 1", ""),
        (rule(NEAR, "warn", of_last=7), NEAR, "needs min_percent or max_percent", "add"),
        (rule(NEAR, "warn", of_last=7, min_percent=5, rows="aplied"), f"{NEAR}.rows", "unknown", "did you mean 'appl"),
        (rule(STABLE, "fail", allow=["add"]), f"{STABLE}.allow", "unknown value", "did you mean 'added'?"),
        (
            rule(EXIST, "fail", column="order_id", other_table="bronze.order", other_column="order_id"),
            f"{EXIST}.other_table",
            "no spec creates this table",
            "did you mean 'bronze.orders'?",
        ),
        (
            rule(EXIST, "fail", column="order_id", other_table="orders", other_column="order_id"),
            f"{EXIST}.other_table",
            "a table is needed here",
            "write it as <layer>.<name>",
        ),
        (
            rule(EXIST, "fail", column="order_id", other_table="bronze.orders", other_column="orderid"),
            f"{EXIST}.other_column",
            "bronze.orders has no such column",
            "did you mean 'order_id'?",
        ),
        (
            rule(
                TOGETHER,
                "fail",
                column_list=["order_id", "day"],
                other_table="bronze.orders",
                other_column_list=["order_id"],
            ),
            f"{TOGETHER}.other_column_list",
            "2 columns are compared with 1",
            "name 2",
        ),
        (
            rule(RECONCILE, "fail", source="bronze.planes", **MEASURES),
            f"{RECONCILE}.source",
            "the table does not read this table",
            "did you mean 'bronze.orders'?",
        ),
        (rule(STABLE, "quarantine"), "action", "checks a whole table", ""),
    ],
)
def test_each_mistake_is_named_with_its_likely_fix(
    tmp_path: Path, expectations: Any, key: str, message: str, fix: str
) -> None:
    found = problem_of_silver(tmp_path, expectations=expectations)
    assert found.key == f"expectations[0].{key}"
    assert message in found.message
    assert found.fix.startswith(fix)


def test_gold_reconciles_with_one_of_its_sources(tmp_path: Path) -> None:
    expectations = rule(RECONCILE, "fail", source="silver.orders", measure="sum(orders)", source_measure="count(*)")
    write_specs(tmp_path, bronze_document(), silver_document(), gold_document(expectations=expectations))
    assert problems_of(tmp_path) == ()
