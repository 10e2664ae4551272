"""Suites on one frame: what passes, what fails and with which details, and what cannot be evaluated at all."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.suites import check_rules
from tests.support.quality.compared_version import compared_version


def rule(name: str, action: str = "fail", reason: str = "", **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=action, reason=reason)


@pytest.fixture(scope="module")
def planes(spark: SparkSession) -> DataFrame:
    """20 planes: seats 1..20, the odd ones without a model, all but two of one maker."""
    return spark.range(1, 21).selectExpr(
        "CAST(id AS INT) AS seats",
        "CAST(id AS TINYINT) AS tiny",
        "IF(id % 2 = 1, NULL, CONCAT('m', id)) AS model",
        "IF(id <= 2, 'BOEING', 'AIRBUS') AS maker",
        "CAST(id + 0.5 AS DECIMAL(10, 2)) AS price",
        "DATE_ADD(DATE'2013-01-01', CAST(id AS INT)) AS built",
        "TIMESTAMP'2013-01-01 06:00:00' + MAKE_INTERVAL(0, 0, 0, CAST(id AS INT)) AS seen_at",
        "IF(id = 20, DOUBLE('NaN'), CAST(id AS DOUBLE)) AS speed",
    )


TWENTY = rule("expect_table_row_count_to_be_between", min_value=20, max_value=20)
WITH_SEATS = rule("expect_column_values_to_not_be_null", column="seats")


def test_without_rules_there_is_nothing_to_check_and_great_expectations_is_not_imported() -> None:
    code = (
        "import sys; from millrace_spark.quality.suites import check_rules; assert check_rules(None, ())[0] == (); "
        "assert 'pyspark.sql' in sys.modules; assert 'great_expectations' not in sys.modules"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failed_rule_shows_its_failure_and_at_most_five_different_values(planes: DataFrame) -> None:
    rules = [
        rule("expect_table_row_count_to_be_between", min_value=100, reason="a fleet has hundreds"),
        WITH_SEATS,
        rule("expect_column_values_to_not_be_null", "warn", column="model"),
        rule("expect_column_values_to_be_between", column="price", max_value=10),
        rule("expect_column_distinct_values_to_be_in_set", column="maker", value_set=["AIRBUS"]),
        rule("expect_column_values_to_be_unique", column="seats"),
    ]
    checks, _ = check_rules(planes.unionAll(planes), rules)
    rows, seats, model, price, maker, unique = checks
    assert [check.rule for check in checks if check.passed] == [seats.rule]
    assert (rows.observed, rows.expected, rows.reason) == (40, {"min_value": 100}, "a fleet has hundreds")
    assert (model.unexpected_rows, model.samples, model.action) == (20, (), "warn")
    assert set(price.samples) <= {f"{seats}.50" for seats in range(10, 21)}
    assert (maker.samples, maker.unexpected_rows) == (("BOEING",), None)
    for check, rows_that_fail in ((price, 22), (unique, 40)):
        assert check.unexpected_rows == rows_that_fail
        assert len(set(check.samples)) == len(check.samples) == 5


def test_every_observed_value_and_sample_survives_json(planes: DataFrame) -> None:
    rules = [
        rule("expect_column_max_to_be_between", column="built", max_value="2013-01-01"),
        rule("expect_column_max_to_be_between", column="seen_at", max_value="2013-01-01T00:00:00"),
        rule("expect_column_sum_to_be_between", column="price", max_value=0),
        rule("expect_column_mean_to_be_between", column="speed", max_value=0),
        rule("expect_column_mean_to_be_between", column="tiny", max_value=2),
        rule("expect_column_values_to_be_in_set", column="seen_at", value_set=["2013-01-01"]),
        rule("expect_column_values_to_be_between", column="speed", max_value=18),
        rule("expect_table_columns_to_match_set", column_set=["seats"]),
        rule("expect_compound_columns_to_be_unique", column_list=["maker", "maker"]),
    ]
    checks, _ = check_rules(planes, rules)
    assert [check.passed for check in checks] == [False] * len(rules)
    assert [check.error for check in checks[:8]] == [""] * 8
    assert checks[0].observed == "2013-01-21"
    assert checks[1].observed == "2013-01-21T06:00:00"
    assert checks[2].observed == 220.0
    assert checks[4].observed == 10.5
    assert set(checks[6].samples) == {19.0, "nan"}
    for check in checks:
        assert CheckResult.model_validate_json(check.model_dump_json()) == check
        json.dumps(check.model_dump(), allow_nan=False)


def test_a_rule_that_cannot_be_evaluated_fails_with_its_own_cause_and_blames_no_other(planes: DataFrame) -> None:
    rules = [
        WITH_SEATS,
        rule("expect_column_values_to_match_regex", column="maker", regex="("),
        rule("expect_column_values_to_be_in_set", column="maker", value_set=[1]),
        rule("expect_column_values_to_be_between", column="built", min_value=1),
        rule("expect_column_values_to_not_be_null", "warn", column="wings"),
        rule("expect_column_values_to_be_between", column="seats", min_value="soon"),
        rule("expect_column_mean_to_be_between", column="maker", min_value=1),
        rule("expect_column_max_to_be_between", column="seats", max_value="soon"),
        rule("expect_column_values_to_be_between", column="seats", max_value=10),
        rule("expect_table_to_be_fresh", column="seen_at", max_age="17 hours"),
        rule("expect_table_to_be_fresh", column="seen_at", max_age="1 days"),
        TWENTY,
    ]
    checked = compared_version({}, interval_end=datetime(2013, 1, 22, tzinfo=UTC))
    checks, _ = check_rules(planes, rules, checked)
    assert [check.passed for check in checks] == [True, *[False] * 9, True, True]
    causes = [
        "",
        "Unclosed group",
        "maker holds text, which 1 cannot be compared with",
        "built holds dates, which 1 cannot",
        "no column 'wings'",
        "seats holds numbers, which 'soon' cannot",
        "numeric",
        "arguments are wrong",
        *[""] * 4,
    ]
    for check, cause in zip(checks, causes, strict=True):
        assert cause in check.error
        assert "\n" not in check.error
        assert bool(cause) == bool(check.error)
    assert checks[8].unexpected_rows == 10
    assert checks[10].observed == "2013-01-21T06:00:00+00:00"


def test_a_version_that_spark_cannot_read_blames_no_rule(spark: SparkSession, planes: DataFrame, lake: Path) -> None:
    path = lake / "silver" / "planes"
    planes.coalesce(1).write.format("delta").save(str(path))
    df = spark.read.format("delta").option("versionAsOf", 0).load(str(path))
    assert check_rules(df, [WITH_SEATS])[0][0].passed
    for data_file in path.glob("*.parquet"):
        data_file.unlink()
    with pytest.raises(PySparkException, match="FAILED_READ_FILE"):
        check_rules(df, [WITH_SEATS])


def banded(limit: int, band: int) -> Expectation:
    return Expectation(
        name="expect_column_max_to_be_between",
        arguments={"column": "seats", "max_value": limit},
        action="fail",
        severity="critical",
        warn={"max_value": band},
    )


def test_a_rule_with_two_bands_is_one_check_of_the_widest_violated(planes: DataFrame) -> None:
    inside, between, outside = check_rules(planes, [banded(30, 20), banded(20, 10), banded(19, 10)])[0]
    assert (inside.passed, inside.action, inside.expected) == (True, "fail", {"max_value": 30})
    assert (between.passed, between.action, between.severity) == (False, "warn", "warning")
    assert (between.expected, between.observed) == ({"max_value": 10}, 20)
    assert (outside.passed, outside.action, outside.severity) == (False, "fail", "critical")
    assert outside.expected == {"max_value": 19}


def test_a_rule_that_compares_versions_cannot_be_evaluated_on_rows_of_no_version(planes: DataFrame) -> None:
    fresh = rule("expect_table_to_be_fresh", column="seen_at", max_age="1 days")
    other = rule(
        "expect_column_values_to_exist_in_other_table", column="model", other_table="silver.a", other_column="b"
    )
    for check in check_rules(planes, [fresh, other])[0]:
        assert not check.passed
        assert "nothing to compare them with" in check.error


def test_a_date_that_python_does_not_know_fails_the_rules_that_it_breaks_alone(spark: SparkSession) -> None:
    rows = spark.sql("SELECT id, DATE'2024-01-01' + CAST(id * 6000000 AS INT) AS day FROM range(3)")
    rules = [
        rule("expect_table_row_count_to_be_between", min_value=3),
        rule("expect_column_values_to_not_be_null", column="day"),
        rule("expect_column_values_to_be_between", "warn", column="day", max_value="2024-12-31"),
        rule("expect_column_max_to_be_between", column="day", max_value="2024-12-31"),
        rule("expect_column_max_to_be_between", column="id", max_value=2),
    ]
    count, filled, between, greatest, of_ids = check_rules(rows, rules)[0]
    assert (count.passed, filled.passed, of_ids.passed) == (True, True, True)
    assert (between.unexpected_rows, between.samples) == (2, ("+18451-06-11", "+34878-11-19"))
    assert "outside of the years 1 to 9999" in greatest.error
