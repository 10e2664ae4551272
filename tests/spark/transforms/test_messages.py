"""Rows of Kafka messages: values in their columns, and messages that are no records."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from millrace.control.landing.formats.plain_copies import write_copy
from millrace.control.landing.landing import LandingFile
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import COPIED, FileFact
from millrace_spark.delta_io.landing_reads import read_landing
from millrace_spark.transforms.messages import message_rows
from tests.support.documents.specs import bronze_spec
from tests.support.storage.landing_files import avro_of

KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key: string, value: binary>>, epoch int"
)
"""The columns of Spark's Kafka source that are read, and the epoch."""


def rows_of(spark: SparkSession, columns: dict[str, Any], *values: bytes | None, **source: Any) -> list[Row]:
    """Return the row of a message with each of these values."""
    spec = bronze_spec(source={"kafka": "main", "topics": ["orders"], **source}, columns=columns)
    messages = [(None, value, "orders", 0, offset, None, None, 0) for offset, value in enumerate(values)]
    return sorted(message_rows(spark.createDataFrame(messages, KAFKA), spec).collect(), key=lambda row: row["_offset"])


def avro_message(schema: str, record: dict[str, Any]) -> bytes:
    """Return a record as a message has it: without the schema."""
    stored = io.BytesIO()
    fastavro.schemaless_writer(stored, fastavro.parse_schema(json.loads(schema)), record)
    return stored.getvalue()


def test_csv_values_are_read_by_the_order_of_the_columns(spark: SparkSession) -> None:
    columns = {"id": {"type": "string"}, "amount": {"type": "int"}, "name": {"type": "string"}}
    values = b'a;5;"x;y"', b"b;many;z", b"c", b'"a" ;5;"x" ', b'"a"x;5; "y"'
    first, second, short, blanks, more = rows_of(spark, columns, *values, format="csv", delimiter=";")
    assert first[:5] == ("a", 5, "x;y", None, None)
    assert second[:5] == ("b", None, "z", '{"amount":"many"}', None)
    assert short["_corrupt_record"] == "c"
    assert (blanks[:3], more[:3]) == (("a", 5, "x"), ('"a"x', 5, ' "y"')), "blanks after a quoted value are none of it"


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
        message = io.BytesIO()
        fastavro.schemaless_writer(message, schema, {"price": value, "more": value})
        sent.append(message.getvalue())
    rows = rows_of(spark, columns, *sent, format="avro", avro_schema=json.dumps(schema))
    price = Decimal("1.125")
    assert [row["price"] for row in rows] == [price, 15_000_000, 1125, price, *(None,) * 4]
    assert [json.loads(row["_rescued"] or "{}").get("price") for row in rows] == [
        *(None,) * 4, "1.0E-5", "0.5", None, None
    ]  # fmt: skip


def test_types_of_avro_that_spark_does_not_know_are_read_like_those_of_landing_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    time, nanos = {"type": "long", "logicalType": "time-micros"}, {"type": "long", "logicalType": "timestamp-nanos"}
    token = {"type": "fixed", "name": "token", "namespace": "t", "size": 16, "logicalType": "uuid"}
    stop = [{"name": "t", "type": ["null", time], "default": None}, {"name": "at", "type": nanos, "default": 0}]
    kinds = {
        "clock": {"type": "int", "logicalType": "time-millis"},
        "time": ["null", time],
        "at": ["null", nanos],
        "at_text": {"type": "long", "logicalType": "local-timestamp-nanos"},
        "token": token,
        "gap": {"type": "fixed", "name": "gap", "size": 12, "logicalType": "duration"},
        "stops": {"type": "array", "items": {"type": "record", "name": "stop", "fields": stop}},
        "tokens": {"type": "map", "values": ["null", "t.token"]},
        "any": [time, "string", "boolean", "t.token", {"type": "array", "items": time}],
        "extra": nanos,
        "wide": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 10}],
        "day": {"type": "int", "logicalType": "date"},
        "sent": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
        "sent_day": {"type": "long", "logicalType": "timestamp-millis"},
        "sent_all": {"type": "array", "items": {"type": "long", "logicalType": "local-timestamp-millis"}},
    }
    sound = {
        "clock": 65_000_001, "time": 65_000_000_001, "at": 1357027200123456789, "at_text": 1357027200123456000,
        "token": bytes(range(16)), "gap": struct.pack("<III", 14, 2, 4294967295), "extra": -1, "any": 0, "day": 3,
        "sent": 2**62, "sent_day": 86_400_000, "sent_all": [2**62, 1],
        "wide": Decimal(f"-1{'0' * 38}.5"),
        "stops": [{"t": 0, "at": -1}, {"t": None, "at": 1000}], "tokens": {"a": bytes(range(16, 32)), "b": None},
    }  # fmt: skip
    odd = {
        **sound, "clock": -1, "time": -(2**63), "at": -(2**63) + 1, "at_text": 2**63 - 1, "any": [86_399_999_999],
        "gap": struct.pack("<III", 0, 0, 60_000), "stops": [], "tokens": {},
    }  # fmt: skip
    records = [
        sound,
        odd,
        {**sound, "time": None, "at": None, "wide": None, "any": "x", "sent": None, "sent_day": 1, "sent_all": []},
        {**sound, "any": bytes(range(16))},
    ]
    columns = {name: {"type": "string"} for name in kinds if name != "extra"}
    columns |= {"at": {"type": "timestamp"}, "stops": {"type": "array<struct<t:string,at:timestamp>>"}}
    columns |= {"tokens": {"type": "map<string,string>"}, "day": {"type": "date"}}
    columns |= {"sent": {"type": "timestamp"}, "sent_day": {"type": "date"}}
    file = avro_of(kinds, *records)
    schema = fastavro.reader(io.BytesIO(file)).metadata["avro.schema"]

    landing = LocalLanding(str(tmp_path))
    (tmp_path / "a.avro").write_bytes(file)
    write_copy(LandingFile(landing, "a.avro"), "avro", tmp_path / "copy")
    fact = FileFact("a.avro", len(file), 0, columns=tuple(kinds), layout=COPIED)
    spec = bronze_spec(source={"landing": "orders", "files": "*", "format": "avro"}, columns=columns)
    landed = read_landing(spark, spec, landing, [fact], {"a.avro": tmp_path / "copy"}).select(*columns, "_rescued")

    values = (avro_message(schema, record) for record in records)
    rows = rows_of(spark, columns, *values, format="avro", avro_schema=schema)
    assert [row[: len(columns) + 1] for row in rows] == landed.collect()
    first, second, *_ = rows
    assert first[:2] == ("18:03:20.001000", "18:03:20.000001")
    assert first["at"] == datetime(2013, 1, 1, 8, 0, 0, 123456)  # noqa: DTZ001  as PySpark gives it
    assert first[3:6] == ("2013-01-01 08:00:00.123456", "00010203-0405-0607-0809-0a0b0c0d0e0f", "P14M2DT4294967.295S")
    assert first["wide"] == f"-1{'0' * 38}.5000000000"
    assert first["tokens"] == {"a": "10111213-1415-1617-1819-1a1b1c1d1e1f", "b": None}
    assert json.loads(first["_rescued"])["at.nanoseconds"] == "2013-01-01 08:00:00.123456789"
    assert (first["sent"], str(first["sent_day"]), json.loads(first["_rescued"])["sent"]) == (
        None,
        "1970-01-02",
        str(2**62),
    )
    assert first["sent_all"] == f'["{2**62}","1970-01-01T00:00:00.001000"]'
    assert (second["any"], second["gap"]) == ('["23:59:59.999999"]', "P0M0DT60S")


def test_a_json_field_in_any_case_is_read_beside_a_column_of_the_message(spark: SparkSession) -> None:
    columns = {"id": {"type": "bigint"}, "order_id": {"from": "ID"}}
    source = {"format": "json", "field_names": "any_case", "transforms": {"id": "offset"}}
    [row] = rows_of(spark, columns, b'{"Id": "a", "x": 1}', **source)
    assert row[:4] == (0, "a", '{"x":"1"}', None)


def test_numbers_and_repeated_fields_are_read_alike_however_the_names_of_fields_are_compared(
    spark: SparkSession,
) -> None:
    columns = {
        "id": {"type": "int"},
        "part": {"type": "int", "from": "x.a"},
        "whole": {"type": "struct<a:int,b:string>", "from": "y"},
    }
    numbers = [b'{"id":20.0}', b'{"id":2e1}', b'{"id":"20.0"}', b'{"id":20.5}', b'{"x":{"a":3.0},"y":{"a":4.0}}']
    repeated = [
        b'{"id":1,"id":2}', b'{"id":1,"id":"x"}', b'{"id":1,"id":null}', b'{"z":1,"z":2}', b'{"x":{"a":1,"a":2}}',
        b'{"y":{"a":1,"a":2,"b":"c"}}', b'{"y":{"a":1,"c":1,"c":2}}', b'{"x":{"a":1},"x":{"a":2}}',
    ]  # fmt: skip
    exact, any_case = (
        rows_of(spark, columns, *numbers, *repeated, format="json", field_names=names)
        for names in ("exact", "any_case")
    )
    assert exact == any_case
    assert [row["id"] for row in exact[:4]] == [20, 20, 20, None]
    assert (exact[4]["part"], exact[4]["whole"]["a"]) == (3, 4)
    assert [row["id"] for row in exact[5:8]] == [2, None, None]
    assert [row["part"] for row in (exact[9], exact[12])] == [2, 2], "the last value counts"
    assert [json.loads(row["_rescued"]) for row in exact[5:]] == [
        {"id": "1"}, {"id": '["x","1"]'}, {"id": "1"}, {"z": '["1","2"]'}, {"x": '{"a":1,"a":2}'},
        {"y.a": "1"}, {"y.c": '["1","2"]'}, {"x": '{"a":1}'},
    ]  # fmt: skip


def test_a_column_of_the_message_and_an_undeclared_field_of_its_name_are_rescued_under_one_key(
    spark: SparkSession,
) -> None:
    columns = {"id": {"type": "tinyint"}, "name": {}}
    schema = {"type": "record", "name": "order", "fields": [{"name": n, "type": "string"} for n in ("id", "name")]}
    of_json, of_avro = (
        rows_of(spark, columns, value, format=kind, transforms={"id": "offset + 200"}, **more)
        for kind, value, more in (
            ("json", b'{"id": "7", "name": "a"}', {}),
            ("avro", b"\x027\x02a", {"avro_schema": json.dumps(schema)}),
        )
    )
    assert [row[:2] for row in (*of_json, *of_avro)] == [(None, "a")] * 2
    pairs = [json.loads(row["_rescued"], object_pairs_hook=list) for row in (*of_json, *of_avro)]
    assert [[(key, sorted(json.loads(texts))) for key, texts in each] for each in pairs] == [[("id", ["200", "7"])]] * 2


def test_a_time_of_a_message_that_no_reader_takes_is_null_and_kept_as_it_was_sent(spark: SparkSession) -> None:
    spec = bronze_spec(source={"kafka": "main", "topics": ["orders"], "format": "json"}, columns={"id": {}})
    values = [b'{"id": "a", "more": "}"}', b'{"id": "b"}', b"{", b'{"id": "c", "more": 1}']
    times = [1735689600000000, -62135596800001, 1735689600000000, 253402300799999]
    rows = [(None, value, "orders", 0, at, None, None, 0) for at, value in enumerate(values)]
    messages = spark.createDataFrame(rows, KAFKA).withColumn(
        "timestamp", F.timestamp_millis(F.element_at(F.array(*map(F.lit, times)), F.col("offset").cast("int") + 1))
    )
    read = sorted(message_rows(messages, spec).collect(), key=lambda row: row["_offset"])
    assert [row["_timestamp"] and row["_timestamp"].year for row in read] == [None, None, None, 9999]
    assert [json.loads(row["_rescued"]) for row in read] == [
        {"more": "}", "_timestamp": "1735689600000000"},
        {"_timestamp": "-62135596800001"},
        {"_timestamp": "1735689600000000"},
        {"more": "1"},
    ]


def test_raw_values_stay_bytes(spark: SparkSession) -> None:
    columns = {"value": {"type": "binary"}, "size": {"type": "int"}}
    some, none = rows_of(spark, columns, b"\xff\x00", None, format="raw", transforms={"size": "length(value)"})
    assert (some["value"], some["size"], some["_null_message"]) == (b"\xff\x00", 2, False)
    assert (none["value"], none["size"], none["_null_message"]) == (None, None, True)
