"""Make bronze rows from Kafka messages: parse the value in the source's format, and add where each message was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from millrace.contracts.spec.bronze_sources import NULL_MESSAGE
from millrace.contracts.spec.record_fields import field_text
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace_spark.transforms.record_parts import RecordColumns, record_columns
from millrace_spark.transforms.records import (
    CORRUPT,
    RECORD,
    RESCUED,
    in_base64,
    is_blank,
    parse_columns,
    parse_json,
    unreadable,
)
from millrace_spark.transforms.values.avro_values import UNION_OPTIONS, exact_time, plain_value, readable_schema
from millrace_spark.transforms.values.exact_values import in_range
from millrace_spark.transforms.values.java_functions import with_java_functions
from millrace_spark.transforms.values.nested_values import json_union, nested_as_json

_VALUE, _TIME = "_value", "_timestamp"

_END = b"end of the value"


def message_rows(messages: DataFrame, spec: BronzeSpec) -> DataFrame:
    """Make bronze rows from Kafka messages.

    Args:
        messages: the columns of Spark's Kafka source, and `epoch`.
        spec: the bronze table; the value provides the columns that the source's `transforms` do not.

    Returns:
        The declared columns, `_rescued`, `_corrupt_record` and the origin columns. Where a format needs text and the
        value is not text, `_corrupt_record` has it in base64, and says so. In the row of a null message all columns
        from the value are null. A time outside of the years 1 to 9999 is null, and in `_rescued` in milliseconds.
    """
    source = spec.kafka_source
    columns, origin = record_columns(spec), source.origin_columns
    received = messages.select(
        F.col("value").alias(_VALUE),
        *(
            (F.col("value").isNull() if name == NULL_MESSAGE else F.col(name.removeprefix("_"))).alias(name)
            for name in origin
        ),
        *(F.expr(sql).alias(name) for name, sql in source.transforms.items()),
    )
    rows = columns.declared(_PARSE[source.format](received, columns, spec))
    time, rescued = in_range(F.col(_TIME), "timestamp"), F.col(RESCUED)
    lost = F.to_json(F.struct(F.unix_millis(_TIME).cast("string").alias(_TIME)))
    is_lost = time.isNull() & F.col(_TIME).isNotNull()
    checked = {RESCUED: F.when(is_lost, json_union([rescued, lost])).otherwise(rescued), _TIME: time}
    return rows.withColumns(checked).select(*spec.columns, RESCUED, CORRUPT, *origin)


def _json_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    return parse_json(text, columns, spec.source.field_names)


def _csv_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    schema = ", ".join(f"`{name}` string" for name in (*columns.fields, CORRUPT))
    options = {"sep": spec.kafka_source.delimiter, "escape": '"', "columnNameOfCorruptRecord": CORRUPT}
    text = received.withColumn(RECORD, F.col(_VALUE).cast("string"))
    line = F.regexp_replace(RECORD, r"\r?\n\z", "")
    fields = text.withColumn("_fields", F.from_csv(line, F.lit(schema), options))
    is_no_line = ~F.is_valid_utf8(RECORD) | is_blank(RECORD) | ~_is_one_line_of_csv(line, spec.kafka_source.delimiter)
    corrupt = F.when(is_no_line, unreadable(RECORD)).otherwise(F.col(CORRUPT))
    parsed = fields.select("*", "_fields.*").withColumn(CORRUPT, corrupt)
    return parse_columns(parsed.drop("_fields", RECORD), replace(columns, fields={}), {}, sound=columns.fields)


def _is_one_line_of_csv(text: Column, delimiter: str) -> Column:
    """Return whether each quoted value ends, and no line ends outside of one: Spark drops what follows."""
    start = rf"(^|\Q{delimiter}\E)"
    unquoted = F.regexp_replace(text, rf'{start}(?:"[^"]*+")++(?=\Q{delimiter}\E|\z)', "$1")
    return ~text.rlike(r'["\r\n]') | ~unquoted.rlike(rf'[\r\n]|{start}"')


def _avro_rows(received: DataFrame, columns: RecordColumns, spec: BronzeSpec) -> DataFrame:
    # from_avro turns bytes that do not fit the schema into a record of nulls. Here the value is the one field of
    # another record, for which Avro writes the same bytes: then that field is null. It also reads nothing of what
    # follows the record, such as another one. Here an end follows the value, and must follow the record.
    record = {"name": "value", "type": readable_schema(json.loads(str(spec.kafka_source.avro_schema)))}
    end = {"name": "end", "type": {"type": "fixed", "name": "millrace_end", "size": len(_END)}}
    wrapped = json.dumps({"type": "record", "name": "millrace_message", "fields": [record, end]})
    options = {"mode": "PERMISSIVE", **UNION_OPTIONS}
    message = from_avro(F.concat(_VALUE, F.lit(_END)), wrapped, options)
    decoded = (
        with_java_functions(received)
        .withColumn("_message", message)
        .withColumn("_fields", F.when(F.col("_message")["end"] == F.lit(_END), F.col("_message")["value"]))
    )
    broken = F.when(F.col(_VALUE).isNotNull() & F.col("_fields").isNull(), in_base64(F.col(_VALUE)))
    received_fields = decoded.select("_fields.*").schema
    readers = columns.readers(spec, received_fields.names)
    names = {field: readers.get(field, f"_undeclared_{number}") for number, field in enumerate(received_fields.names)}
    undeclared = {name: field_text(field) for field, name in names.items() if field not in readers}
    values = list[Column]()
    for field in received_fields:
        name, received_value = names[field.name], F.col("_fields")[field.name]
        value, kind = plain_value(received_value, field.dataType, columns.has_commas(name))
        if time := exact_time(received_value, field.dataType):
            (value, text, below), kind = time, "timestamp"
            if columns.kinds.get(name) in (kind, *(() if below else ("date",))):
                values.append(text.alias(f"_time_{name}"))
                undeclared[f"_time_{name}"] = f"{field_text(field.name)}{below}"
            else:
                value, kind = F.coalesce(text, value.cast("string")), "string"
        sent = received_value, field.dataType
        values.append(nested_as_json(value, kind, columns.whole_kind(name), sent).alias(name))
    parsed = decoded.select("*", *values, broken.alias(CORRUPT)).drop("_fields", "_message")
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
