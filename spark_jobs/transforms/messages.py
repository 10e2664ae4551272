"""From Kafka messages to bronze rows: the value parsed as the source says, and where each message stood."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from include.contracts.spec.bronze_sources import KafkaSource
from include.contracts.spec.table_spec import BronzeSpec
from spark_jobs.transforms.records import CORRUPT, RECORD, RESCUED, in_base64, parse_columns, parse_json, unreadable

NULL_MESSAGE = "_null_message"
"""Whether the message has a key and no value, which is how a compacted topic says that a key is deleted."""

ORIGIN = {
    "_topic": "string",
    "_partition": "int",
    "_offset": "bigint",
    "_timestamp": "timestamp",
    "_key": "binary",
    NULL_MESSAGE: "boolean",
}
"""What bronze keeps of every message beside its value."""

_VALUE = "_value"

HEADERS = {"_headers": "array<struct<key:string,value:binary>>"}
"""What it keeps of messages whose source asks for headers."""


def origin_columns(source: KafkaSource) -> dict[str, str]:
    """The columns that say where a message came from, with their types."""
    return {**ORIGIN, **HEADERS} if source.headers else ORIGIN


def message_rows(messages: DataFrame, spec: BronzeSpec) -> DataFrame:
    """Rows from Kafka messages.

    Args:
        messages: the columns of Spark's Kafka source.
        spec: the bronze table; columns that the source's `transforms` do not give are read from the value.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record` and the origin columns. A value that is no text where it
        should be stands in base64, and says so, in `_corrupt_record`. Of a null message all that comes from the value
        is null.
    """
    source = spec.kafka_source
    kinds = {name: column.type for name, column in spec.columns.items()}
    given = (F.expr(sql).alias(name) for name, sql in source.transforms.items())
    origin = {name: _origin()[name] for name in origin_columns(source)}
    received = messages.select(
        F.col("value").alias(_VALUE), *(column.alias(name) for name, column in origin.items()), *given
    )
    rows = _PARSE[source.format](received, kinds, source)
    return rows.select(*kinds, RESCUED, CORRUPT, *origin)


def _origin() -> dict[str, Column]:
    taken = {name: F.col(name.removeprefix("_")) for name in (*ORIGIN, *HEADERS) if name != NULL_MESSAGE}
    return {**taken, NULL_MESSAGE: F.col("value").isNull()}


def _json_rows(received: DataFrame, kinds: Mapping[str, str], _: KafkaSource) -> DataFrame:
    return parse_json(received.withColumn(RECORD, F.col(_VALUE).cast("string")), kinds)


def _csv_rows(received: DataFrame, kinds: Mapping[str, str], source: KafkaSource) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in (*_of_value(kinds, source), CORRUPT))
    options = {"sep": source.delimiter, "columnNameOfCorruptRecord": CORRUPT}
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    fields = text.withColumn("_fields", F.from_csv(RECORD, F.lit(schema), options))
    parsed = fields.select("*", "_fields.*").withColumn(CORRUPT, F.coalesce(unreadable(RECORD), CORRUPT))
    return _rows(parsed.drop("_fields", RECORD), kinds, source)


def _avro_rows(received: DataFrame, kinds: Mapping[str, str], source: KafkaSource) -> DataFrame:
    # Of bytes that do not fit its schema from_avro makes a record of nulls. As the one field of another record, which
    # Avro writes as the same bytes, the value itself is null then.
    inside = {"name": "value", "type": json.loads(str(source.avro_schema))}
    wrapped = json.dumps({"type": "record", "name": "millrace_message", "fields": [inside]})
    read = received.withColumn("_fields", from_avro(_VALUE, wrapped, {"mode": "PERMISSIVE"})["value"])
    broken = F.when(F.col(_VALUE).isNotNull() & F.col("_fields").isNull(), in_base64(F.col(_VALUE)))
    parsed = read.select("*", "_fields.*", broken.alias(CORRUPT)).drop("_fields")
    return _rows(parsed, kinds, source)


def _raw_rows(received: DataFrame, kinds: Mapping[str, str], source: KafkaSource) -> DataFrame:
    parsed = received.withColumns({name: F.col(_VALUE) for name in _of_value(kinds, source)})
    return _rows(parsed.withColumn(CORRUPT, F.lit(None).cast("string")), kinds, source)


def _of_value(kinds: Mapping[str, str], source: KafkaSource) -> list[str]:
    return [name for name in kinds if name not in source.transforms]


def _rows(parsed: DataFrame, kinds: Mapping[str, str], source: KafkaSource) -> DataFrame:
    return parse_columns(parsed.drop(_VALUE), kinds, tuple(origin_columns(source)))


_PARSE: dict[str, Callable[[DataFrame, Mapping[str, str], KafkaSource], DataFrame]] = {
    "json": _json_rows,
    "csv": _csv_rows,
    "avro": _avro_rows,
    "raw": _raw_rows,
}
