"""Expectation classes of a project's own, on a Spark table: those of the documented example."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from embedded.clone import CLONE
from millrace.contracts.restricted import RESTRICTED, RestrictedColumns
from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.suites import check_rules
from millrace_spark.quality.verdicts.restricted_rules import RestrictedRules
from tests.support.quality.own_classes import own_classes

EXAMPLE = CLONE / "docs" / "examples" / "expectations"


Put = Callable[[Path], None]
"""Treat the files of a folder as if they were the project's."""


@pytest.fixture
def put() -> Iterator[Put]:
    with ExitStack() as placed:
        yield lambda folder: placed.enter_context(own_classes(folder))


def rule(name: str, **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action="fail")


def test_the_classes_of_the_example_pass_and_fail(spark: SparkSession, put: Put) -> None:
    put(EXAMPLE)
    df = spark.sql(
        "SELECT * FROM VALUES ('4006381333931', 1.5), ('4006381333932', 0.0), ('abc', 20000.0), (null, null) "
        "AS products (ean, price)"
    )
    checks, _ = check_rules(
        df,
        [
            rule("expect_column_values_to_be_ean13", column="ean"),
            rule("expect_column_values_to_be_ean13", column="ean", mostly=0.3),
            rule("expect_price_to_be_plausible"),
            rule("expect_price_to_be_plausible", max_value=30_000, strict_min=False),
            rule("expect_column_values_to_be_ean13", column="size"),
        ],
    )
    assert [check.error for check in checks[:4]] == [""] * 4
    assert [check.passed for check in checks] == [False, True, False, True, False]
    assert (checks[0].unexpected_rows, set(checks[0].samples)) == (2, {"4006381333932", "abc"})
    assert checks[2].unexpected_rows == 2
    assert "no column 'size'" in checks[4].error


IN_PYTHON = """
from __future__ import annotations

from typing import Optional

from great_expectations.compatibility.pyspark import functions as F
from great_expectations.compatibility.pyspark import types
from great_expectations.execution_engine import SparkDFExecutionEngine
from great_expectations.expectations.expectation import ColumnMapExpectation
from great_expectations.expectations.metrics.map_metric_provider import ColumnMapMetricProvider
from great_expectations.expectations.metrics.map_metric_provider import column_condition_partial


def is_long(word, least):
    return word is not None and len(word) >= least


class ColumnValuesLong(ColumnMapMetricProvider):
    condition_metric_name = "column_values.long"
    condition_value_keys = ("least",)

    @column_condition_partial(engine=SparkDFExecutionEngine)
    def _spark(cls, column, least, **kwargs):
        return F.udf(lambda word: is_long(word, least), types.BooleanType())(column)


class ExpectColumnValuesToBeLong(ColumnMapExpectation):
    least: Optional[int] = 2
    map_metric = "column_values.long"
    success_keys = ("least", "mostly")
"""


def test_a_class_may_use_annotations_as_text_and_run_python_in_the_workers(
    spark: SparkSession, put: Put, tmp_path: Path
) -> None:
    (tmp_path / "long.py").write_text(IN_PYTHON)
    put(tmp_path)
    df = spark.sql("SELECT * FROM VALUES ('ab'), ('abc'), (null) AS w (word)")
    name = "expect_column_values_to_be_long"
    checks, _ = check_rules(df, [rule(name, column="word"), rule(name, column="word", least=3)])
    assert [check.error for check in checks] == ["", ""]
    assert [(check.passed, check.samples) for check in checks] == [(True, ()), (False, ("ab",))]


def test_a_class_that_nobody_can_evaluate_is_blamed_alone(spark: SparkSession, put: Put, tmp_path: Path) -> None:
    module = "from great_expectations.expectations.expectation import"
    (tmp_path / "long.py").write_text(
        f"{module} ColumnMapExpectation\nclass ExpectLong(ColumnMapExpectation):\n    map_metric = 'column.lnog'\n"
    )
    verdict = "    def _validate(self, *_, **__):\n        return {'success': 'False', 'result': {}}\n"
    (tmp_path / "words.py").write_text(f"{module} BatchExpectation\nclass ExpectWords(BatchExpectation):\n{verdict}")
    put(tmp_path)
    df = spark.sql("SELECT * FROM VALUES ('ab'), ('abc') AS w (word)")
    others = [rule("expect_column_value_lengths_to_equal", column="word", value=value) for value in (2, 4)]
    checks, _ = check_rules(df, [rule("expect_long", column="word"), rule("expect_words"), *others])
    assert [check.passed for check in checks] == [False] * 4
    assert "No definition found for column.lnog" in checks[0].error
    assert "'False' as its result, which is neither True nor False" in checks[1].error
    assert [(check.error, check.unexpected_rows) for check in checks[2:]] == [("", 1), ("", 2)]
    word = RestrictedRules(RestrictedColumns(frozenset({"word"}), frozenset({"word"}), others=True))
    [check] = check_rules(df, [rule("expect_words")], restricted=word)[0]
    assert check.error == RESTRICTED, "it may be a value"
