"""Make bronze rows from Kafka messages: parse the value in the source's format, and add where each message was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from include.contracts.spec.bronze_sources import KafkaSource
from include.contracts.spec.table_spec import BronzeSpec
from spark_jobs.transforms.record_parts import RecordColumns, record_columns
from spark_jobs.transforms.records import (
    CORRUPT,
    PARSE_JSON,
    RECORD,
    RESCUED,
    in_base64,
    nested_as_json,
    parse_columns,
    unreadable,
)

NULL_MESSAGE = "_null_message"
"""True for a message with a key and no value: in a compacted topic it means that the key is deleted."""

ORIGIN = {
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
    "_key": "binary",
    NULL_MESSAGE: "boolean",
}
"""The columns, with types, that bronze stores of every message next to its value."""

_VALUE = "_value"

HEADERS = {"_headers": "array<struct<key:string,value:binary>>"}
"""The columns, with types, that bronze stores in addition where the source asks for headers."""


def origin_columns(source: KafkaSource) -> dict[str, str]:
    """Return the columns that say where a message came from, with their types."""
    return {**ORIGIN, **HEADERS} if source.headers else ORIGIN


def message_rows(messages: DataFrame, spec: BronzeSpec) -> DataFrame:
    """Make bronze rows from Kafka messages.

    Args:
        messages: the columns of Spark's Kafka source.
        spec: the bronze table; the value provides the columns that the source's `transforms` do not.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record` and the origin columns. Where a format needs text and the
        value is not text, `_corrupt_record` has it in base64, and says so. In the row of a null message all columns
        from the value are null.
    """
    source = spec.kafka_source
    columns, origin = record_columns(spec), origin_columns(source)
    received = messages.select(
        F.col("value").alias(_VALUE),
        *(
            (F.col("value").isNull() if name == NULL_MESSAGE else F.col(name.removeprefix("_"))).alias(name)
            for name in origin
        ),
        *(F.expr(sql).alias(name) for name, sql in source.transforms.items()),
    )
    rows = columns.declared(_PARSE[source.format](received, columns, spec))
    return rows.select(*spec.columns, RESCUED, CORRUPT, *origin)


def _json_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    return PARSE_JSON[spec.source.field_names](text, columns)


def _csv_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in (*columns.fields, CORRUPT))
    options = {"sep": spec.kafka_source.delimiter, "columnNameOfCorruptRecord": CORRUPT}
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    fields = text.withColumn("_fields", F.from_csv(RECORD, F.lit(schema), options))
    parsed = fields.select("*", "_fields.*").withColumn(CORRUPT, F.coalesce(unreadable(RECORD), CORRUPT))
    return parse_columns(parsed.drop("_fields", RECORD), replace(columns, fields={}), {})


def _avro_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    # from_avro turns bytes that do not fit the schema into a record of nulls. Here the value is the one field of
    # another record, for which Avro writes the same bytes: then that field is null.
    field = {"name": "value", "type": json.loads(str(spec.kafka_source.avro_schema))}
    wrapped = json.dumps({"type": "record", "name": "millrace_message", "fields": [field]})
    decoded = received.withColumn("_fields", from_avro(_VALUE, wrapped, {"mode": "PERMISSIVE"})["value"])
    broken = F.when(F.col(_VALUE).isNotNull() & F.col("_fields").isNull(), in_base64(F.col(_VALUE)))
    received_kinds = dict(decoded.select("_fields.*").dtypes)
    readers = columns.readers(spec, received_kinds)
    names = {field: readers.get(field, f"_undeclared_{number}") for number, field in enumerate(received_kinds)}
    values = [
        nested_as_json(F.col("_fields")[field], received_kinds[field], columns.whole_kind(name)).alias(name)
        for field, name in names.items()
    ]
    parsed = decoded.select("*", *values, broken.alias(CORRUPT)).drop("_fields")
    undeclared = {name: field for field, name in names.items() if field not in readers}
    return parse_columns(parsed, columns, undeclared)


def _raw_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    parsed = received.withColumns({name: F.col(_VALUE) for name in columns.fields})
    return parse_columns(parsed.withColumn(CORRUPT, F.lit(None).cast("string")), replace(columns, fields={}), {})


_PARSE: dict[str, Callable[[DataFrame, RecordColumns, BronzeSpec], DataFrame]] = {
    "json": _json_rows,
    "csv": _csv_rows,
    "avro": _avro_rows,
    "raw": _raw_rows,
}
