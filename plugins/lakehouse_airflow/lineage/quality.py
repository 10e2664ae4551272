"""The results of a gate's rules as facets of the table that it checked."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openlineage.client.facet_v2 import (
    InputDatasetFacet,
    data_quality_assertions_dataset,
    data_quality_metrics_input_dataset,
)

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Action

_COLUMN_METRICS = {
    "expect_column_max_to_be_between": "max",
    "expect_column_min_to_be_between": "min",
    "expect_column_sum_to_be_between": "sum",
    "expect_column_unique_value_count_to_be_between": "distinctCount",
}
"""Expectation -> the metric that it observes."""

_ROW_COUNTS = ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal")


def quality_facets(checks: Iterable[CheckResult]) -> dict[str, InputDatasetFacet]:
    """Return the result of each rule that was checked, and the figures that the rules observed.

    Values of the table are left out, other than such figures.
    """
    judged = [check for check in checks if not check.not_judged]
    facets: dict[str, InputDatasetFacet] = {}
    if judged:
        assertions = [_assertion(check) for check in judged]
        facets["dataQualityAssertions"] = data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(assertions)
    if metrics := _metrics(judged):
        facets["dataQualityMetrics"] = metrics
    return facets


def _assertion(check: CheckResult) -> data_quality_assertions_dataset.Assertion:
    name, columns = _parts(check.rule)
    observed = check.unexpected_rows if check.unexpected_rows is not None else check.observed
    return data_quality_assertions_dataset.Assertion(
        assertion=name,
        success=check.passed,
        column=columns[0] if len(columns) == 1 else None,
        severity="error" if check.action == Action.FAIL else "warn",
        name=check.rule,
        description=check.reason or None,
        expected=json.dumps(check.expected, default=str) if check.expected else None,
        actual=str(observed) if _is_number(observed) else None,
    )


def _metrics(
    checks: Iterable[CheckResult],
) -> data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet | None:
    """Return the number of rows and the figures of columns that the rules observed; None if they observed none."""
    rows: int | None = None
    columns: dict[str, dict[str, Any]] = {}
    for check in checks:
        name, named = _parts(check.rule)
        if not _is_number(check.observed):
            continue
        if name in _ROW_COUNTS:
            rows = int(check.observed)
        elif name in _COLUMN_METRICS:
            columns.setdefault(named[0], {})[_COLUMN_METRICS[name]] = check.observed
    if rows is None and not columns:
        return None
    return data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
        rowCount=rows,
        columnMetrics={
            name: data_quality_metrics_input_dataset.ColumnMetrics(**figures) for name, figures in columns.items()
        },
    )


def _parts(rule: str) -> tuple[str, list[str]]:
    """Return the expectation and the columns of `Expectation.rule`.

    >>> _parts("expect_compound_columns_to_be_unique(origin, dest)")
    ('expect_compound_columns_to_be_unique', ['origin', 'dest'])
    """
    name, _, columns = rule.removesuffix(")").partition("(")
    return name, [column for column in columns.split(", ") if column]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
