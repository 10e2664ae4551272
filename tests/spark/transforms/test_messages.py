"""Rows of Kafka messages: values in their columns, and messages that are no records."""

from __future__ import annotations

import json
from base64 import b64encode
from decimal import Decimal
from io import BytesIO
from typing import Any

from fastavro import schemaless_writer
from pyspark.sql import Row, SparkSession

from spark_jobs.transforms.messages import message_rows
from tests.support.documents.specs import bronze_spec

KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>"
)
"""The columns of Spark's Kafka source that are read."""


def rows_of(spark: SparkSession, columns: dict[str, Any], *values: bytes | None, **source: Any) -> list[Row]:
    """Return the row of a message with each of these values."""
    spec = bronze_spec(source={"kafka": "main", "topics": ["orders"], **source}, columns=columns)
    messages = [(None, value, "orders", 0, offset, None, None) for offset, value in enumerate(values)]
    return sorted(message_rows(spark.createDataFrame(messages, KAFKA), spec).collect(), key=lambda row: row["_offset"])


def test_csv_values_are_read_by_the_order_of_the_columns(spark: SparkSession) -> None:
    columns = {"id": {"type": "string"}, "amount": {"type": "int"}, "name": {"type": "string"}}
    values = b'a;5;"x;y"', b"b;many;z", b"c"
    first, second, short = rows_of(spark, columns, *values, format="csv", delimiter=";")
    assert first[:5] == ("a", 5, "x;y", None, None)
    assert second[:5] == ("b", None, "z", '{"amount":"many"}', None)
    assert short["_corrupt_record"] == "c"


def test_an_avro_value_is_one_record_of_its_schema_and_nothing_else(spark: SparkSession) -> None:
    fields = [{"name": "id", "type": "string"}, {"name": "amount", "type": "int"}, {"name": "extra", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "order", "fields": fields})
    columns = {"id": {"type": "bigint"}, "order_id": {"from": "ID"}, "total": {"type": "bigint", "from": "Amount"}}
    source = {"format": "avro", "avro_schema": schema, "field_names": "any_case", "transforms": {"id": "offset"}}
    record, registry = b"\x02a\x0a\x02x", b"\x00\x00\x00\x00\x07"
    values = b"\x02", record + record, registry + record, record[:-1], b""
    whole, *broken = rows_of(spark, columns, record, *values, **source)
    assert whole[:5] == (0, "a", 5, '{"extra":"x"}', None)
    assert [row["_corrupt_record"].rpartition(" ")[2] for row in broken] == [
        b64encode(value).decode() for value in values
    ]


def test_a_number_of_a_union_of_avro_is_none_with_a_comma(spark: SparkSession) -> None:
    kind = ["null", "string", "double"]
    schema = {"type": "record", "name": "order", "fields": [{"name": name, "type": kind} for name in ("price", "more")]}
    columns = {"price": {"type": "decimal(12,3)", "decimal_comma": True, "null_values": "-9.5"}}
    values = [1.125, 1.5e7, "1.125", "1,125", 0.00001, "0.5", -9.5, None]
    sent = list[bytes]()
    for value in values:
        message = BytesIO()
        schemaless_writer(message, schema, {"price": value, "more": value})
        sent.append(message.getvalue())
    rows = rows_of(spark, columns, *sent, format="avro", avro_schema=json.dumps(schema))
    price = Decimal("1.125")
    assert [row["price"] for row in rows] == [price, 15_000_000, 1125, price, *(None,) * 4]
    assert [json.loads(row["_rescued"] or "{}").get("price") for row in rows] == [
        *(None,) * 4, "1.0E-5", "0.5", None, None
    ]  # fmt: skip


def test_a_json_field_in_any_case_is_read_beside_a_column_of_the_message(spark: SparkSession) -> None:
    columns = {"id": {"type": "bigint"}, "order_id": {"from": "ID"}}
    source = {"format": "json", "field_names": "any_case", "transforms": {"id": "offset"}}
    [row] = rows_of(spark, columns, b'{"Id": "a", "x": 1}', **source)
    assert row[:4] == (0, "a", '{"x":"1"}', None)


def test_raw_values_stay_bytes(spark: SparkSession) -> None:
    columns = {"value": {"type": "binary"}, "size": {"type": "int"}}
    some, none = rows_of(spark, columns, b"\xff\x00", None, format="raw", transforms={"size": "length(value)"})
    assert (some["value"], some["size"], some["_null_message"]) == (b"\xff\x00", 2, False)
    assert (none["value"], none["size"], none["_null_message"]) == (None, None, True)
