"""The quarantine: refused rows with their reasons, stored as JSON so that no change of a spec can break them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.lake_path import LakePath
from millrace.contracts.time_format import ISO_MICROSECOND
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import commit_time, latest_version
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.log.table_queries import query, text_literals, timestamp_literal
from millrace.control.quarantine.events import QuarantineEvents
from millrace.paths import LakehousePaths
from millrace_spark.delta_io.reads import read_version
from millrace_spark.delta_io.row_writes import append, replace_where
from millrace_spark.delta_io.tables import OpenSession, TableShape
from millrace_spark.protocol.secondary import TABLE_ID, SecondaryTable, belongs_to, write_once
from millrace_spark.transforms.received import RECEIVED, ROW_ID
from millrace_spark.transforms.sql_texts import in_texts

SHAPE = TableShape(
    columns={
        "record": "string",
        "reasons": "array<string>",
        "source": "string",
        "position": "bigint",
        "_interval_start": "timestamp",
        TABLE_ID: "string",
        "_stream": "string",
        "_batch_seq": "bigint",
        "_batch_token": "string",
        "row_id": "string",
        "received": "string",
        "first_seen": "timestamp",
        "last_seen": "timestamp",
    },
    comments={
        "row_id": "what the row is known by, however often it is refused; what became of it is in ops/quarantine",
        "received": "the row as the table's writer received it, as JSON: what a replay tries",
        "first_seen": "when it was refused first",
        "last_seen": "when it was refused last",
        "record": "the refused row as JSON, or the record as text when it could not be parsed",
        "reasons": "why it was refused: `rule: reason`, one for each rule",
        "source": "the landing file it came from, or the Kafka topic and partition",
        "position": "its record number in that file, where it could not be parsed, or its Kafka offset",
    },
    comment="Rows that a row rule refused",
)


@dataclass(frozen=True)
class QuarantineWrite:
    """The change that a committed batch makes to the quarantine of its table.

    Attributes:
        paths: the lakehouse.
        winner: the batch.
        rows: number of rows that the batch refused.
        replaced: landing files whose earlier content the batch removed; their refused rows are removed as well.
        read_again: start of each interval that the batch read again as a whole; its earlier refused rows are removed.
        restarted: how `source` begins in the rows of each source that the batch read from its beginning, because it is
            another table than before: the earlier refused rows of it are removed. Empty for all rows.
        own: how `source` begins in the rows that batches of the stream refuse, if other streams refuse others:
            `read_again` concerns no other rows.
        decided: the ids of earlier rows of `restarted` whose decisions go on: the refused rows with their content have
            other ids.
    """

    paths: LakehousePaths
    winner: Winner
    rows: int
    replaced: Sequence[str] = ()
    read_again: Sequence[datetime] = ()
    restarted: Sequence[str] = ()
    own: Sequence[str] = ()
    decided: Collection[str] = ()

    def run(self, open_session: OpenSession, refused: Callable[[SparkSession, datetime], DataFrame]) -> int | None:
        """Commit the change to the quarantine once; start no Spark job where there is nothing to change.

        Returns:
            The number of added rows, none of which was in quarantine before; None if rows were replaced.

        Args:
            open_session: opens a separate session.
            refused: builds the refused rows, with the columns of the quarantine table, on the given session; it gets
                the time at which the batch was committed, which is read before Spark starts.
        """
        has_outdated = self._has_outdated_rows()
        if not self.rows and not has_outdated:
            return 0
        table = quarantine_of(self.winner.intent.table, self.paths)
        refused_at = commit_time(self.paths.table(self.winner.intent.table), self.winner.version)

        def write(session: SparkSession) -> None:
            if has_outdated:
                self._replace(refused(session, refused_at), table.path)
            else:
                append(refused(session, refused_at), table.path)

        write_once(open_session, table, self.winner, write)
        return None if has_outdated else self.rows

    def _replace(self, refused: DataFrame, path: LakePath) -> None:
        """Replace the outdated rows; rows that are in the quarantine already keep their `first_seen`."""
        outdated = [f"startswith(source, {text_literals([start])})" if start else "true" for start in self.restarted]
        outdated += [in_texts("source", self.replaced)] if self.replaced else []
        is_own = " OR ".join(f"startswith(source, {text_literals([start])})" for start in self.own) or "true"
        read_again = (f"`_interval_start` = TIMESTAMP '{start:{ISO_MICROSECOND}}'" for start in self.read_again)
        outdated += [f"{of_interval} AND ({is_own})" for of_interval in read_again]
        of_batch = in_texts("_batch_token", [self.winner.token])
        of_table = belongs_to(self.winner.intent.table_id)
        stored = read_version(refused.sparkSession, path, latest_version(path)).where(of_table)
        if self.decided:
            intent, events, ids = (
                self.winner.intent,
                QuarantineEvents(self.paths),
                new_ids(stored, refused, self.decided),
            )
            events.copy_to_new_ids(intent.table, intent.table_id, ids, intent.token)
        first = stored.groupBy("row_id").agg(F.min("first_seen").alias("_first"))
        rows = refused.join(first, "row_id", "left").withColumn("first_seen", F.coalesce("_first", "first_seen"))
        replace_where(rows.select(*SHAPE.columns), path, f"{of_table} AND ({' OR '.join([*outdated, of_batch])})")

    def _has_outdated_rows(self) -> bool:
        path = self.paths.quarantine(self.winner.intent.table)
        if not (self.replaced or self.read_again or self.restarted) or not is_table(path):
            return False
        is_outdated = [
            f"starts_with(source, {text_literals([start])})" if start else "true" for start in self.restarted
        ]
        is_outdated += [f"source IN ({text_literals(self.replaced)})"] if self.replaced else []
        is_own = " OR ".join(f"starts_with(source, {text_literals([start])})" for start in self.own) or "true"
        of_intervals = (f"_interval_start = {timestamp_literal(start)}" for start in self.read_again)
        is_outdated += [f"{of_interval} AND ({is_own})" for of_interval in of_intervals]
        of_table = f"{TABLE_ID} = {text_literals([self.winner.intent.table_id])}"
        sql = f"SELECT 1 FROM stored WHERE {of_table} AND ({' OR '.join(is_outdated)}) LIMIT 1"
        return bool(query(open_table(path), sql))


def new_ids(stored: DataFrame, refused: DataFrame, ids: Collection[str]) -> dict[str, str]:
    """Return id -> id in `refused`, for those of some stored rows that have another since a rebuild of their source.

    The number of the batch that loaded a row is a part of its id, and a rebuild changes it.
    """
    if not ids:
        return {}
    content = F.regexp_replace("received", r'"_batch_seq":\d+,?', "")
    same = F.to_json(F.struct("source", "position", content.alias("received")))
    number = F.expr("row_number() OVER (PARTITION BY _same ORDER BY row_id)")
    old, new = (
        rows.join(others.select("row_id"), "row_id", "left_anti")
        .where("received IS NOT NULL")
        .select("row_id", same.alias("_same"))
        .withColumn("_number", number)
        for rows, others in ((stored.where(in_texts("row_id", ids)), refused), (refused, stored))
    )
    pairs = old.join(new.withColumnRenamed("row_id", "new_id"), ["_same", "_number"])
    return {row["row_id"]: row["new_id"] for row in pairs.select("row_id", "new_id").collect()}


def quarantine_of(table: str, paths: LakehousePaths) -> SecondaryTable:
    """Return the quarantine table of `table`."""
    layer, name = table.split(".")
    return SecondaryTable(f"{layer}_quarantine.{name}", paths.quarantine(table), SHAPE)


def quarantine_rows(
    refused: DataFrame,
    winner: Winner,
    refused_at: datetime,
    *,
    record: Column,
    reasons: Column,
    source: Column,
    position: Column,
) -> DataFrame:
    """Convert refused rows to the columns of the quarantine table.

    Args:
        refused: the rows, with the columns `_interval_start`, `ROW_ID` and `RECEIVED`.
        winner: the batch that refused them.
        refused_at: when the batch was committed.
        record: the row as the rules saw it.
        reasons: why it was refused.
        source: the file or the topic partition that it came from.
        position: its record number or offset there.
    """
    intent, seen = winner.intent, F.lit(refused_at).cast("timestamp")
    return refused.select(
        record.alias("record"),
        reasons.alias("reasons"),
        source.alias("source"),
        position.cast("bigint").alias("position"),
        "_interval_start",
        F.lit(intent.table_id).alias(TABLE_ID),
        F.lit(intent.stream).alias("_stream"),
        F.lit(intent.batch_seq).cast("bigint").alias("_batch_seq"),
        F.lit(intent.token).alias("_batch_token"),
        F.col(ROW_ID).alias("row_id"),
        F.col(RECEIVED).alias("received"),
        seen.alias("first_seen"),
        seen.alias("last_seen"),
    )
