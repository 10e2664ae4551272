"""Make bronze rows from Kafka messages: parse the value in the source's format, and add where each message was."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from include.contracts.spec.bronze_sources import KafkaSource
from include.contracts.spec.record_fields import fields_among, fields_of
from include.contracts.spec.table_spec import BronzeSpec
from spark_jobs.transforms.records import (
    CORRUPT,
    PARSE_JSON,
    RECORD,
    RESCUED,
    in_base64,
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
    kinds = {name: column.type for name, column in spec.columns.items()}
    origin = origin_columns(source)
    received = messages.select(
        F.col("value").alias(_VALUE),
        *(
            (F.col("value").isNull() if name == NULL_MESSAGE else F.col(name.removeprefix("_"))).alias(name)
            for name in origin
        ),
        *(F.expr(sql).alias(name) for name, sql in source.transforms.items()),
    )
    rows = _PARSE[source.format](received, kinds, spec)
    return rows.select(*kinds, RESCUED, CORRUPT, *origin)


def _json_rows(received: DataFrame, kinds: Mapping[str, str], spec: BronzeSpec) -> DataFrame:
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    return PARSE_JSON[spec.source.field_names](text, kinds, fields_of(spec))


def _csv_rows(received: DataFrame, kinds: Mapping[str, str], spec: BronzeSpec) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in (*fields_of(spec), CORRUPT))
    options = {"sep": spec.kafka_source.delimiter, "columnNameOfCorruptRecord": CORRUPT}
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    fields = text.withColumn("_fields", F.from_csv(RECORD, F.lit(schema), options))
    parsed = fields.select("*", "_fields.*").withColumn(CORRUPT, F.coalesce(unreadable(RECORD), CORRUPT))
    return parse_columns(parsed.drop("_fields", RECORD), kinds, {}, {})


def _avro_rows(received: DataFrame, kinds: Mapping[str, str], spec: BronzeSpec) -> DataFrame:
    # from_avro turns bytes that do not fit the schema into a record of nulls. Here the value is the one field of
    # another record, for which Avro writes the same bytes: then that field is null.
    field = {"name": "value", "type": json.loads(str(spec.kafka_source.avro_schema))}
    wrapped = json.dumps({"type": "record", "name": "millrace_message", "fields": [field]})
    decoded = received.withColumn("_fields", from_avro(_VALUE, wrapped, {"mode": "PERMISSIVE"})["value"])
    broken = F.when(F.col(_VALUE).isNotNull() & F.col("_fields").isNull(), in_base64(F.col(_VALUE)))
    fields = decoded.select("_fields.*").columns
    readers = {field: name for name, field in fields_among(fields, spec).items()}
    names = {field: readers.get(field, f"_undeclared_{number}") for number, field in enumerate(fields)}
    values = [F.col("_fields")[field].alias(name) for field, name in names.items()]
    parsed = decoded.select("*", *values, broken.alias(CORRUPT)).drop("_fields")
    undeclared = {name: field for field, name in names.items() if field not in readers}
    return parse_columns(parsed, kinds, fields_of(spec), undeclared)


def _raw_rows(received: DataFrame, kinds: Mapping[str, str], spec: BronzeSpec) -> DataFrame:
    parsed = received.withColumns({name: F.col(_VALUE) for name in fields_of(spec)})
    return parse_columns(parsed.withColumn(CORRUPT, F.lit(None).cast("string")), kinds, {}, {})


_PARSE: dict[str, Callable[[DataFrame, Mapping[str, str], BronzeSpec], DataFrame]] = {
    "json": _json_rows,
    "csv": _csv_rows,
    "avro": _avro_rows,
    "raw": _raw_rows,
}
