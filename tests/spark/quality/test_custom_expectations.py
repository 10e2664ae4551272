"""Expectation classes of a project's own, on a Spark table: those of the documented example."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.contracts.spec import expectation_arguments
from include.contracts.spec.custom_expectations import read_custom_expectations
from include.contracts.spec.expectation import Expectation
from include.settings import PROJECT
from spark_jobs.quality.suites import check_rules

EXAMPLE = PROJECT / "docs" / "examples" / "expectations"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example's files, as if they were in include/expectations."""
    from spark_jobs.quality.gx import classes

    found, _ = read_custom_expectations(EXAMPLE, expectation_arguments.ARGUMENTS)
    for name, custom in found.items():
        monkeypatch.setitem(expectation_arguments.CUSTOM_EXPECTATIONS, name, custom)
        monkeypatch.setitem(expectation_arguments.ARGUMENTS, name, custom.arguments)
    monkeypatch.setattr(classes, "EXPECTATIONS", EXAMPLE)
    yield
    classes.register_custom_expectations.cache_clear()


def test_the_classes_of_the_example_pass_and_fail(spark: SparkSession, example: None) -> None:
    df = spark.sql(
        "SELECT * FROM VALUES ('4006381333931', 1.5), ('4006381333932', 0.0), ('abc', 20000.0), (null, null) "
        "AS products (ean, price)"
    )

    def rule(name: str, **arguments: Any) -> Expectation:
        return Expectation(name=name, arguments=arguments, action="fail")

    checks = check_rules(
        df,
        [
            rule("expect_column_values_to_be_ean13", column="ean"),
            rule("expect_column_values_to_be_ean13", column="ean", mostly=0.3),
            rule("expect_price_to_be_plausible"),
            rule("expect_price_to_be_plausible", max_value=30_000, strict_min=False),
            rule("expect_column_values_to_be_ean13", column="size"),
        ],
    ).checks
    assert [check.error for check in checks[:4]] == [""] * 4
    assert [check.passed for check in checks] == [False, True, False, True, False]
    assert (checks[0].unexpected_rows, set(checks[0].samples)) == (2, {"4006381333932", "abc"})
    assert checks[2].unexpected_rows == 2
    assert "no column 'size'" in checks[4].error
