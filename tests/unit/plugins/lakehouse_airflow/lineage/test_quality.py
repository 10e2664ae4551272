"""The results of rules as OpenLineage's assertions and metrics."""

from __future__ import annotations

from include.contracts.job.report import CheckResult
from lakehouse_airflow.lineage.quality import quality_facets

CHECKS = (
    CheckResult(rule="expect_table_row_count_to_be_between()", action="fail", passed=True, observed=7),
    CheckResult(
        rule="expect_column_max_to_be_between(delay)",
        action="warn",
        passed=False,
        observed=99.5,
        expected={"max_value": 9},
    ),
    CheckResult(
        rule="expect_column_distinct_values_to_be_in_set(status)",
        action="fail",
        passed=False,
        observed=["a-value"],
        samples=("a-value",),
        unexpected_rows=2,
    ),
    CheckResult(rule="expect_compound_columns_to_be_unique(a, b)", action="fail", passed=True),
    CheckResult(rule="expect_table_columns_to_be_stable()", action="warn", passed=True, not_judged="no past"),
)


def test_each_checked_rule_is_an_assertion_without_values_of_rows() -> None:
    facet = quality_facets(CHECKS)["dataQualityAssertions"]
    found = [(one.column, one.success, one.severity, one.actual, one.expected) for one in facet.assertions]
    assert found == [
        (None, True, "error", "7", None),
        ("delay", False, "warn", "99.5", '{"max_value": 9}'),
        ("status", False, "error", "2", None),
        (None, True, "error", None, None),
    ]
    assert "a-value" not in str(facet)


def test_the_figures_that_rules_observed_are_metrics() -> None:
    facet = quality_facets(CHECKS)["dataQualityMetrics"]
    assert facet.rowCount == 7
    assert {name: metrics.max for name, metrics in facet.columnMetrics.items()} == {"delay": 99.5}
    assert quality_facets(()) == {}, "a gate without rules has no result"
