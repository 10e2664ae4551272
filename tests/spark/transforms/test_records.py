"""Records as received: whatever a line holds ends in a column, in `_rescued`, or whole in `_corrupt_record`."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.record_fields import field_text
from millrace_spark.transforms.record_parts import RecordColumns
from millrace_spark.transforms.records import CORRUPT, RECORD, RESCUED, parse_columns, parse_json_lines
from millrace_spark.transforms.values.avro_values import plain_value
from millrace_spark.transforms.values.nested_values import nested_as_json
from tests.support.examples import many, settings_for
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE

KINDS = {"name": "string", "amount": "int", "day": "date", "ratio": "double", "price": "decimal(38,9)"}
PRICE = "12345678901234567890.123456789"
INTEGER = "1234567890" * 5

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = SCALARS | st.sampled_from(["7", " 8 ", "2013-01-31", "2013-02-31", "1.5"]) | st.lists(SCALARS, max_size=2)
SAME = {name: name for name in KINDS}

NO_OBJECTS = ['{"name": "a"', "[1, 2]", '[{"name": "a"}]', "5", "null", '"name"', "{name: 1}", "x"]

HOSTILE = {
    "name": "Order ID", "amount": "a.b", "day": "`x`", "ratio": "größe\n'\"", "price": "Price", "price_of_all": "PRICE",
    "order_id": "name", "call": "f(x)", "space": " ", "long": "x" * 300, "corrupt": CORRUPT,
}  # fmt: skip
"""Column -> field: fields that differ only in case, that have the name of another column, or characters of SQL."""

FIELDS = st.sampled_from([*HOSTILE.values(), *HOSTILE, "order id", "colour", "día", ""])
HOSTILE_KINDS = {name: KINDS.get(name, "string") for name in HOSTILE}


def parse(
    spark: SparkSession, *lines: str, kinds: Mapping[str, str] = KINDS, fields: Mapping[str, str] = SAME,
    field_names: str = "exact",
) -> list[Row]:  # fmt: skip
    """The bronze rows of these lines, in their order."""
    frame = spark.createDataFrame([(line,) for line in lines], f"{RECORD} string").coalesce(1)
    # A day as text: Spark knows days before the year 1, which Python does not.
    parsed = parse_json_lines(frame, RecordColumns(kinds, fields), field_names)
    return parsed.withColumn("day", F.col("day").cast("string")).collect()


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
        (
            '{"amount": 1, "amount": 2, "colour": 3, "colour": 4}',
            {"amount": 2, RESCUED: {"amount": "1", "colour": '["3","4"]'}},
        ),
        (f'{{"name": {INTEGER}, "offer": {INTEGER}}}', {"name": INTEGER, RESCUED: {"offer": INTEGER}}),
        ("{}", {}),
        # Lines that are nearly JSON lose no field either.
        ("{'name': 'a', 'amount': 1}", {"name": "a", "amount": 1}),
        ("{'amount': 1, 'zz': 2}", {"amount": 1, RESCUED: {"zz": "2"}}),
        ('{"amount": 1, "zz": NaN}', {"amount": 1, RESCUED: {"zz": "NaN"}}),
        ("{'price': 1.5, 'zz': 2.5}", {"price": Decimal("1.5"), RESCUED: {"zz": "2.5"}}),
        *((line, {CORRUPT: line}) for line in NO_OBJECTS),
    ]
    rows = [present(row) for row in parse(spark, *(line for line, _ in expected))]
    assert rows == [row for _, row in expected]


def require_nothing_lost(records: list[dict[str, Any]], rows: list[Row], fields: Mapping[str, str]) -> None:
    """Compare rows with their records: every value is in the column of its field, or in `_rescued`, and only there."""
    assert len(rows) == len(records)
    columns = {field: name for name, field in fields.items()}
    for record, row in zip(records, rows, strict=True):
        assert row[CORRUPT] is None
        rescued = json.loads(row[RESCUED] or "{}")
        for field, value in record.items():
            if value is not None and (field not in columns or row[columns[field]] is None):
                assert is_kept(value, rescued[field_text(field)])
        assert set(rescued) <= set(map(field_text, record)), "nothing is rescued that was not there"
        for field, name in columns.items():
            assert row[name] is None or (record.get(field) is not None and field_text(field) not in rescued)


@given(records=many(st.dictionaries(FIELDS, VALUES, max_size=8)))
@settings_for(1)
def test_a_column_reads_a_field_of_any_name_and_no_value_is_lost(
    spark: SparkSession, records: list[dict[str, Any]]
) -> None:
    rows = parse(spark, *map(json.dumps, records), kinds=HOSTILE_KINDS, fields=HOSTILE)
    require_nothing_lost(records, rows, HOSTILE)


def test_each_value_of_a_hostile_field_is_in_its_column(spark: SparkSession) -> None:
    values = {
        name: {"amount": 5, "day": "2013-01-31", "ratio": 1.5, "price": 2.5}.get(name, f"of {name}") for name in HOSTILE
    }
    record = json.dumps({field: values[name] for name, field in HOSTILE.items()})
    [row] = parse(spark, record, kinds=HOSTILE_KINDS, fields=HOSTILE)
    assert present(row) == {**values, "price": Decimal("2.5")}


def test_a_field_in_any_case_is_read_and_two_that_collide_are_both_rescued(spark: SparkSession) -> None:
    fields = {**SAME, "name": "Größe.ID", "price": "PRICE"}
    expected = [
        (
            '{"GRÖSSE.id": "a", "GRÖße.iD": "b", "Amount": "5"}',
            {"name": "b", "amount": 5, RESCUED: {"`GRÖSSE.id`": "a"}},
        ),
        (
            '{"AMOUNT": 5, "amount": 6, "Day": "2013-01-31"}',
            {"day": "2013-01-31", RESCUED: {"AMOUNT": "5", "amount": "6"}},
        ),
        (
            '{"AMOUNT": 5, "amount": 6, "AMOUNT": 7, "day": null, "Day": null}',
            {RESCUED: {"AMOUNT": '["5","7"]', "amount": "6", "day": None, "Day": None}},
        ),
        ('{"AMOUNT": "many", "Colour": 1}', {RESCUED: {"amount": "many", "Colour": "1"}}),
        (f'{{"price": {PRICE}, "OFFER": {PRICE}}}', {"price": Decimal(PRICE), RESCUED: {"OFFER": PRICE}}),
        ("{'Amount': 1}", {"amount": 1}),
        ("{}", {}),
        ("[1]", {CORRUPT: "[1]"}),
        (" ", {CORRUPT: " "}),
    ]
    rows = parse(spark, *(line for line, _ in expected), fields=fields, field_names="any_case")
    assert [present(row) for row in rows] == [row for _, row in expected]


TWO_KINDS = {"name": "string", "amount": "int"}


def of_file(spark: SparkSession, rows: str, columns: str) -> list[dict[str, Any]]:
    """The bronze rows of a file with columns of its own, without what is null."""
    frame = spark.sql(f"SELECT *, CAST(NULL AS STRING) AS {CORRUPT} FROM VALUES {rows} AS file({columns})")
    undeclared = {column: f"the {column}" for column in frame.columns if column not in ("name", "amount", CORRUPT)}
    fields = {"name": "Name", "amount": "Amount (EUR)"}
    return [present(row) for row in parse_columns(frame, RecordColumns(TWO_KINDS, fields), undeclared).collect()]


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        ("('a', 5), ('b', NULL)", "name, amount", [{"name": "a", "amount": 5}, {"name": "b"}]),
        ("('a', '5'), ('b', 'x')", "name, amount",
         [{"name": "a", "amount": 5}, {"name": "b", RESCUED: {"Amount (EUR)": "x"}}]),
        ("('a', 5L), ('b', 99999999999L)", "name, amount",
         [{"name": "a", "amount": 5}, {"name": "b", RESCUED: {"Amount (EUR)": "99999999999"}}]),
        ("('a', 5, 'red'), ('b', 6, NULL)", "name, amount, colour",
         [{"name": "a", "amount": 5, RESCUED: {"the colour": "red"}}, {"name": "b", "amount": 6}]),
        ("('a')", "name", [{"name": "a"}]),
    ],
    ids=["of the declared types", "text", "another type", "one more column", "a column less"],
)  # fmt: skip
def test_columns_of_a_file_end_in_theirs_or_in_rescued(
    spark: SparkSession, rows: str, columns: str, expected: list[dict[str, Any]]
) -> None:
    assert of_file(spark, rows, columns) == expected


def in_base64(received: bytes) -> str:
    return f"no text, in base64: {b64encode(received).decode()}"


def test_values_of_types_that_no_column_has_become_json(spark: SparkSession) -> None:
    deep = "named_struct('a', " * 6 + "'x'" + ")" * 6
    union = "named_struct('millrace_union_string', 'u', 'millrace_union_int', cast(null as int))"
    values = {
        "by_number": ("map(1, 'x')", '{"1":"x"}'),
        "odd_name": ("named_struct('Full name', 'x', 'id', 1, 'ID', '2')", '{"Full name":"x","id":1,"ID":"2"}'),
        "deep": (deep, '{"a":' * 6 + '"x"' + "}" * 6),
        "of_any": ("named_struct('of', parse_json('[1,{\"a\":null}]'), 's', 'x')", '{"of":[1,{"a":null}],"s":"x"}'),
        "of_union": (f"named_struct('of', {union}, 's', 'x')", '{"of":"u","s":"x"}'),
        "replacement_character": ("array('\ufffd')", '["\ufffd"]'),
        "bytes": ("named_struct('s', '\ufffd', 'bytes', X'FF')", '{"s":"\ufffd","bytes":"/w=="}'),
        "bytes_below": ("map(1, array(named_struct('a b', 'x', 'c', X'FF')))", '{"1":[{"a b":"x","c":"/w=="}]}'),
    }
    frame = spark.sql("SELECT " + ", ".join(f"{value} AS {name}" for name, (value, _) in values.items()))
    plain = {field.name: plain_value(F.col(field.name), field.dataType, False) for field in frame.schema}
    sent = {field.name: (F.col(field.name), field.dataType) for field in frame.schema}
    row = frame.select(*(nested_as_json(*plain[name], None, sent[name]).alias(name) for name in plain)).first()
    assert row is not None
    assert row.asDict() == {name: text for name, (_, text) in values.items()}


def test_bytes_that_are_no_utf8_are_rescued_and_not_stored_as_text(spark: SparkSession) -> None:
    text, kind = "cast(X'636166E9' AS STRING)", "struct<tags:array<string>,of:map<string,string>>"
    values = {
        "name": text,
        "whole": "named_struct('tags', array('a', null), 'of', map('k', 'v'))",
        "inside": f"named_struct('tags', array('a', {text}), 'of', map('k', 'v'))",
        "below": f"named_struct('tags', array('a'), 'of', map({text}, 'v'))",
        "of_bytes": "X'636166E9'",
        "undeclared": text,
    }
    values |= dict.fromkeys(("beside_bytes", "declared"), f"array(named_struct('s', {text}, 'b', X'FF'), null)")
    values |= dict.fromkeys(("of_another_type", "as_text", "more"), values["inside"])
    columns = ", ".join(f"{value} AS {name}" for name, value in values.items())
    frame = spark.sql(f"SELECT {columns}, CAST(NULL AS STRING) AS {CORRUPT}")
    kinds = {"name": "string", "whole": kind, "inside": kind, "below": kind, "of_bytes": "string"}
    kinds |= {"of_another_type": "struct<tags:array<string>>", "as_text": "string"}
    kinds["declared"] = "array<struct<s:string,b:binary>>"
    nested = {name: kinds.get(name) for name, type_ in frame.dtypes if "<" in type_}
    received, schema = dict(frame.dtypes), frame.schema
    frame = frame.withColumns(
        {
            name: nested_as_json(F.col(name), received[name], of, (F.col(name), schema[name].dataType))
            for name, of in nested.items()
        }
    )
    undeclared = {"undeclared": "a field", "more": "more", "beside_bytes": "beside bytes"}
    rows = parse_columns(frame, RecordColumns(kinds, {"name": "Name"}), undeclared)
    (row,) = map(present, rows.collect())
    assert row == {
        "whole": Row(tags=["a", None], of={"k": "v"}),
        RESCUED: {
            "Name": in_base64(b"caf\xe9"),
            "of_bytes": in_base64(b"caf\xe9"),
            "a field": in_base64(b"caf\xe9"),
            **dict.fromkeys(("inside", "of_another_type", "as_text", "more"), in_base64(b"{[a, caf\xe9], {k -> v}}")),
            **dict.fromkeys(("beside bytes", "declared"), in_base64(b"[{caf\xe9, \xff}, null]")),
            "below": in_base64(b"{[a], {caf\xe9 -> v}}"),
        },
    }


def test_a_file_may_have_thousands_of_undeclared_columns(spark: SparkSession) -> None:
    fields = {f"_{number}": f"field {number}" for number in range(2000)}
    frame = spark.range(1).select("id", *(F.lit("x").alias(name) for name in fields), F.lit(None).alias(CORRUPT))
    (row,) = parse_columns(frame, RecordColumns({"id": "bigint"}, {}), fields, sound=[*fields]).collect()
    assert json.loads(row[RESCUED]) == dict.fromkeys(fields.values(), "x")


@pytest.mark.parametrize(("kind", "is_looked_through"), [("int", False), ("string", True)])
def test_only_texts_and_columns_of_another_type_are_looked_through(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], kind: str, is_looked_through: bool
) -> None:
    kinds = {"name": "bigint", "amount": "int"}
    file = spark.range(3).selectExpr("id AS name", f"cast(id as {kind}) AS amount", f"cast(null as string) {CORRUPT}")
    parse_columns(file, RecordColumns(kinds, {}), {}).explain()
    plan = capsys.readouterr().out
    assert "Range" in plan
    assert ("CASE WHEN" in plan) is is_looked_through


def test_spark_compiles_the_look_at_values_of_a_file_with_the_scan(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    file = spark.sql(
        f"SELECT string(id) AS name, string(id) AS amount, 1 AS more, CAST(NULL AS STRING) AS {CORRUPT} FROM range(9)"
    )
    columns = RecordColumns({"name": "string", "amount": "int"}, {})
    parse_columns(file, columns, {"more": "more"}).explain("codegen")
    compiled, *_ = capsys.readouterr().out.partition("Generated code")
    assert "Range" in compiled
    assert RESCUED in compiled
