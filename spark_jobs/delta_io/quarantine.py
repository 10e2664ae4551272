"""The quarantine: rows a rule refused, with their reasons, kept as JSON so that a change of schema cannot break it."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.control.batch import Winner
from include.paths import LakehousePaths
from spark_jobs.delta_io.secondary import SecondaryTable
from spark_jobs.delta_io.tables import TableShape

SHAPE = TableShape(
    columns={
        "record": "string",
        "reasons": "array<string>",
        "source": "string",
        "position": "bigint",
        "_interval_start": "timestamp",
        "_stream": "string",
        "_batch_seq": "bigint",
        "_batch_token": "string",
    },
    comments={
        "record": "the refused row as JSON, or the record as text when it could not be parsed",
        "reasons": "why it was refused: `rule: reason`, one for each rule",
        "source": "the landing file it came from, or the Kafka topic and partition",
        "position": "its record number in that file, where it could not be parsed, or its Kafka offset",
    },
    comment="Rows that a row rule refused",
)


def quarantine_of(table: str, paths: LakehousePaths) -> SecondaryTable:
    """The quarantine table of `table`."""
    layer, name = table.split(".")
    return SecondaryTable(f"{layer}_quarantine.{name}", paths.quarantine(table), SHAPE)


def quarantine_rows(
    refused: DataFrame, winner: Winner, *, record: Column, reasons: Column, source: Column, position: Column
) -> DataFrame:
    """Refused rows, which have an `_interval_start`, in the form of the quarantine table."""
    intent = winner.intent
    return refused.select(
        record.alias("record"),
        reasons.alias("reasons"),
        source.alias("source"),
        position.cast("bigint").alias("position"),
        "_interval_start",
        F.lit(intent.stream).alias("_stream"),
        F.lit(intent.batch_seq).cast("bigint").alias("_batch_seq"),
        F.lit(intent.token).alias("_batch_token"),
    )
