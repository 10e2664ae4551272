"""Row rules: which rows they refuse, and which rules cannot judge a row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from millrace.contracts.spec.expectation import Expectation
from millrace.errors import SpecError
from millrace_spark.quality.rules.row_rules import REFUSALS, fails, refusals
from millrace_spark.transforms.refusals import is_dropped, is_quarantined, missing_values, with_refusals

NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
GREATER = "expect_column_pair_values_a_to_be_greater_than_b"
FLIGHTS = pa.schema(
    {
        "flight_id": pa.string(),
        "delay": pa.int32(),
        "carrier": pa.string(),
        "day": pa.date32(),
        "left_at": pa.timestamp("us", tz="UTC"),
        "paid": pa.bool_(),
    }
)


def rule(name: str, action: str = "quarantine", reason: str = "", **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=action, reason=reason)


def check_rows(df: DataFrame, rules: Sequence[Expectation], required: Sequence[str]) -> DataFrame:
    return with_refusals(df, rules, missing_values(required), refusals(rules))


def flights(spark: SparkSession, *rows: tuple[Any, ...]) -> Any:
    named = [dict(zip(FLIGHTS.names, row, strict=False)) for row in rows]
    return spark.createDataFrame(pa.Table.from_pylist(named, schema=FLIGHTS))


def refused(df: Any) -> list[list[str]]:
    return [[refusal["rule"] for refusal in row[REFUSALS]] for row in df.orderBy("flight_id").collect()]


def test_a_row_carries_every_rule_that_it_fails_in_the_order_of_the_spec(spark: SparkSession) -> None:
    rules = [
        rule(BETWEEN, column="delay", min_value=-120, max_value=2880, reason="clocks disagree"),
        rule(IN_SET, "drop", column="carrier", value_set=["AA", "UA"]),
    ]
    df = check_rows(flights(spark, ("a", 5, "AA"), ("b", 3000, "XX"), ("c", None, None)), rules, ["flight_id"])
    assert refused(df) == [[], [f"{BETWEEN}(delay)", f"{IN_SET}(carrier)"], []]
    found = df.where("flight_id = 'b'").collect()[0][REFUSALS]
    assert [refusal.asDict() for refusal in found] == [
        {"rule": f"{BETWEEN}(delay)", "action": "quarantine", "reason": "clocks disagree"},
        {"rule": f"{IN_SET}(carrier)", "action": "drop", "reason": ""},
    ]


def test_a_missing_key_is_quarantined_with_its_column_as_the_reason(spark: SparkSession) -> None:
    df = check_rows(flights(spark, (None, 5), ("b", None)), [], ["flight_id", "delay", "flight_id"])
    found = df.orderBy("flight_id").select(REFUSALS).collect()
    assert [[(item["action"], item["reason"]) for item in row[REFUSALS]] for row in found] == [
        [("quarantine", "flight_id is null")],
        [("quarantine", "delay is null")],
    ]


def test_without_rules_no_row_is_refused_and_the_column_is_never_null(spark: SparkSession) -> None:
    df = check_rows(flights(spark, ("a", None)), [], [])
    assert refused(df) == [[]]
    assert df.schema[REFUSALS].dataType == refused_type(spark)


def refused_type(spark: SparkSession) -> Any:
    rules = [rule(NOT_NULL, column="flight_id")]
    return flights(spark, ("a",)).select(refusals(rules).alias("r")).schema["r"].dataType


def test_one_quarantine_rule_outweighs_drop_rules(spark: SparkSession) -> None:
    rules = [rule(NOT_NULL, "drop", column="carrier"), rule(BETWEEN, column="delay", min_value=0)]
    df = check_rows(flights(spark, ("a", 1, "AA"), ("b", 1, None), ("c", -1, None)), rules, [])
    actions = df.select("flight_id", is_quarantined(), is_dropped()).orderBy("flight_id")
    assert [tuple(row) for row in actions.collect()] == [("a", False, False), ("b", False, True), ("c", True, False)]


def test_bounds_may_be_one_sided_strict_or_text(spark: SparkSession) -> None:
    df = flights(spark, ("a", -1), ("b", 0), ("c", 10), ("d", 11), ("e", None))
    failing: list[tuple[dict[str, Any], list[str]]] = [
        ({"min_value": 0, "max_value": 10}, ["a", "d"]),
        ({"min_value": 0, "max_value": 10, "strict_min": True, "strict_max": True}, ["a", "b", "c", "d"]),
        ({"max_value": "10"}, ["d"]),
        ({"min_value": 0.5}, ["a", "b"]),
    ]
    judged = [fails(rule(BETWEEN, column="delay", **arguments)) for arguments, _ in failing]
    rows = df.select("flight_id", *judged).orderBy("flight_id").collect()
    for place, (arguments, expected) in enumerate(failing, start=1):
        assert [row.flight_id for row in rows if row[place]] == expected, arguments


def test_a_moment_without_a_zone_is_utc_whatever_the_zone_of_the_process(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    df = spark.sql("SELECT 'a' AS flight_id, timestamp'2013-01-01 05:59:59' AS left_at")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        bounds: list[Any] = [
            "2013-01-01T06:00:00",
            datetime.fromisoformat("2013-01-01T06:00:00"),
            datetime(2013, 1, 1, 6, tzinfo=UTC),
        ]
        inside = "2013-01-01T05:59:59"
        judged = [fails(rule(BETWEEN, column="left_at", min_value=bound)) for bound in (*bounds, inside)]
        [found] = df.select(judged).collect()
    finally:
        monkeypatch.undo()
        time.tzset()
    assert [*found] == [True, True, True, False]


def test_a_stand_in_date_before_the_year_1000_can_be_ruled_out(spark: SparkSession) -> None:
    df = flights(spark, ("a", 1, "AA", date(1, 1, 1)), ("b", 1, "AA", date(2013, 1, 1)))
    unknown = rule("expect_column_values_to_not_be_in_set", column="day", value_set=[date(1, 1, 1)])
    assert [row.flight_id for row in df.where(fails(unknown)).collect()] == ["a"]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (rule(BETWEEN, column="delay", min_value=0, mostly=0.9), "mostly is the share of a table's rows"),
        (rule(BETWEEN, column="delay"), "give at least one"),
        (rule(BETWEEN, column="delay", min_value=2, max_value=1), "is greater than max_value"),
        (rule(BETWEEN, column="delay", min_value=2, max_value="2013-01-01"), "not of one kind"),
        (rule(BETWEEN, column="delay", min_value="soon"), "not 'soon'"),
        (rule(BETWEEN, column="delay", min_value=True), "not True"),
        (rule(BETWEEN, column="delay", minimum=2), "takes column, min_value"),
        (rule(IN_SET, column="carrier"), "takes column, value_set"),
        (rule("expect_column_value_lengths_to_be_between", column="carrier", max_value=1.5), "a whole number"),
        (rule("expect_table_row_count_to_equal", "fail", value=1), "cannot refuse a row"),
    ],
)
def test_a_rule_that_cannot_judge_a_row_is_refused_and_says_why(
    spark: SparkSession, given: Expectation, complaint: str
) -> None:
    with pytest.raises(SpecError, match=complaint) as error:
        refusals([given])
    assert given.rule in str(error.value)


def test_every_rule_that_does_not_fit_the_columns_is_named_at_once_before_any_row_is_read(spark: SparkSession) -> None:
    misfits = [
        (rule(NOT_NULL, column="flight"), "no column 'flight'; did you mean flight_id?"),
        (rule(BETWEEN, column="carrier", min_value=1), "carrier holds text, which 1 cannot be compared with"),
        (rule(BETWEEN, column="day", min_value=1), "day holds dates, which 1 cannot be compared with"),
        (rule(BETWEEN, column="delay", min_value="2013-01-01"), "delay holds numbers"),
        (rule(IN_SET, column="carrier", value_set=["AA", 1]), "carrier holds text, which 1 cannot"),
        (rule(IN_SET, column="delay", value_set=[1, "1"]), "delay holds numbers, which '1' cannot"),
        (rule(IN_SET, column="day", value_set=["2013-01-01", "junk"]), "day holds dates, which 'junk' cannot"),
        (rule(IN_SET, column="paid", value_set=[1]), "paid holds booleans"),
        (rule(GREATER, column_A="delay", column_B="carrier"), "delay holds numbers and carrier holds text"),
    ]
    with pytest.raises(SpecError) as error:
        check_rows(flights(spark, ("a",)), [misfit for misfit, _ in misfits], [])
    for line, (_, complaint) in zip(str(error.value).splitlines(), misfits, strict=True):
        assert complaint in line
