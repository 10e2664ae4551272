"""Records as received: whatever a line holds ends in a column, in `_rescued`, or whole in `_corrupt_record`."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.transforms.records import CORRUPT, RECORD, RESCUED, parse_columns, parse_json

KINDS = {"name": "string", "amount": "int", "day": "date", "ratio": "double", "price": "decimal(38,9)"}
PRICE = "12345678901234567890.123456789"
INTEGER = "1234567890" * 5

FIELDS = st.sampled_from([*KINDS, "colour", "Amount", "día", CORRUPT])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.sampled_from(["7", " 8 ", "2013-01-31", "2013-02-31", "1.5"]) | st.lists(SCALARS, max_size=2)
RECORDS = st.lists(st.dictionaries(FIELDS, VALUES, max_size=5), min_size=1, max_size=40)


def parse(spark: SparkSession, *lines: str) -> list[Row]:
    """The bronze rows of these lines, in their order."""
    frame = spark.createDataFrame([(line,) for line in lines], f"{RECORD} string").coalesce(1)
    # A day as text: Spark knows days before the year 1, which Python does not.
    return parse_json(frame, KINDS).withColumn("day", F.col("day").cast("string")).collect()


def present(row: Row) -> dict[str, Any]:
    """The columns of a row that are not null; what was rescued as a dict."""
    rescued = json.loads(row[RESCUED]) if row[RESCUED] else None
    return {name: value for name, value in {**row.asDict(), RESCUED: rescued}.items() if value is not None}


def is_kept(value: Any, text: str) -> bool:
    """Whether a JSON value is what this text says: a string as it is, anything else written as JSON."""
    return text == value if isinstance(value, str) else bool(json.loads(text) == value)


def test_a_value_goes_to_its_column_or_to_rescued(spark: SparkSession) -> None:
    expected = [
        ('{"name": "a", "amount": 5, "day": "2013-01-31"}', {"name": "a", "amount": 5, "day": "2013-01-31"}),
        ('{"amount": " 5 ", "ratio": 1e2}', {"amount": 5, "ratio": 100.0}),
        ('{"amount": "many", "day": "2013-02-31"}', {RESCUED: {"amount": "many", "day": "2013-02-31"}}),
        ('{"amount": 99999999999}', {RESCUED: {"amount": "99999999999"}}),
        (f'{{"price": {PRICE}}}', {"price": Decimal(PRICE)}),
        (f'{{"price": "{PRICE}"}}', {"price": Decimal(PRICE)}),
        (f'{{"offer": {PRICE}}}', {RESCUED: {"offer": PRICE}}),
        ('{"Amount": 5}', {RESCUED: {"Amount": "5"}}),
        ('{"name": {"first": ["x"]}}', {"name": '{"first":["x"]}'}),
        ('{"name": null, "colour": null}', {RESCUED: {"colour": None}}),
        ('{"amount": 1, "amount": 2, "colour": 3, "colour": 4}', {"amount": 2, RESCUED: {"colour": "4"}}),
        (f'{{"name": {INTEGER}, "offer": {INTEGER}}}', {"name": INTEGER, RESCUED: {"offer": INTEGER}}),
        ("{}", {}),
    ]
    rows = [present(row) for row in parse(spark, *(line for line, _ in expected))]
    assert rows == [row for _, row in expected]


def test_lines_that_are_nearly_json_lose_no_field_either(spark: SparkSession) -> None:
    expected = [
        ("{'name': 'a', 'amount': 1}", {"name": "a", "amount": 1}),
        ("{'amount': 1, 'zz': 2}", {"amount": 1, RESCUED: {"zz": "2"}}),
        ('{"amount": 1, "zz": NaN}', {"amount": 1, RESCUED: {"zz": '"NaN"'}}),
        ("{'price': 1.5, 'zz': 2.5}", {"price": Decimal("1.5"), RESCUED: {"zz": "2.5"}}),
    ]
    rows = [present(row) for row in parse(spark, *(line for line, _ in expected))]
    assert rows == [row for _, row in expected]


def test_a_line_that_is_no_object_is_kept_whole(spark: SparkSession) -> None:
    lines = ['{"name": "a"', "[1, 2]", '[{"name": "a"}]', "5", "null", '"name"', "{name: 1}", "x"]
    assert [present(row) for row in parse(spark, *lines)] == [{CORRUPT: line} for line in lines]


@given(records=RECORDS)
@settings(max_examples=10, phases=[Phase.generate], suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_is_lost(spark: SparkSession, records: list[dict[str, Any]]) -> None:
    rows = parse(spark, *map(json.dumps, records))
    assert len(rows) == len(records)
    for record, row in zip(records, rows, strict=True):
        assert row[CORRUPT] is None
        rescued = json.loads(row[RESCUED] or "{}")
        columns = {name: row[name] for name in KINDS}
        for field, value in record.items():
            if value is not None and columns.get(field) is None:
                assert is_kept(value, rescued[field])
        assert set(rescued) <= set(record), "nothing is rescued that was not there"


def of_file(spark: SparkSession, rows: str, columns: str) -> list[dict[str, Any]]:
    """The bronze rows of a file with columns of its own, without what is null."""
    frame = spark.sql(f"SELECT *, CAST(NULL AS STRING) AS {CORRUPT} FROM VALUES {rows} AS file({columns})")
    return [present(row) for row in parse_columns(frame, {"name": "string", "amount": "int"}, ()).collect()]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ("('a', 5), ('b', NULL)", "name, amount", [{"name": "a", "amount": 5}, {"name": "b"}]),
        ("('a', '5'), ('b', 'x')", "name, amount",
         [{"name": "a", "amount": 5}, {"name": "b", RESCUED: {"amount": "x"}}]),
        ("('a', 5L), ('b', 99999999999L)", "name, amount",
         [{"name": "a", "amount": 5}, {"name": "b", RESCUED: {"amount": "99999999999"}}]),
        ("('a', 5, 'red'), ('b', 6, NULL)", "name, amount, colour",
         [{"name": "a", "amount": 5, RESCUED: {"colour": "red"}}, {"name": "b", "amount": 6}]),
        ("('a')", "name", [{"name": "a"}]),
    ],
    ids=["of the declared types", "text", "another type", "one more column", "a column less"],
)  # fmt: skip
def test_columns_of_a_file_end_in_theirs_or_in_rescued(
    spark: SparkSession, rows: str, columns: str, expected: list[dict[str, Any]]
) -> None:
    assert of_file(spark, rows, columns) == expected


@pytest.mark.parametrize(("kind", "is_looked_through"), [("int", False), ("string", True)])
def test_only_columns_of_another_type_are_looked_through(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], kind: str, is_looked_through: bool
) -> None:
    file = spark.range(3).selectExpr(
        "cast(id as string) AS name", f"cast(id as {kind}) AS amount", f"cast(null as string) {CORRUPT}"
    )
    parse_columns(file, {"name": "string", "amount": "int"}, ()).explain()
    plan = capsys.readouterr().out
    assert "Range" in plan
    assert ("CASE WHEN" in plan) is is_looked_through
