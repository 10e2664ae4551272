"""One of the bronze tables of a silver table: the versions of it that a batch reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cache

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.bronze_sources import SOURCE_FILE
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import BatchSources, Winner
from millrace_spark.delta_io.reads import read_appended, read_removed, read_version
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.silver.origins import place_in, with_source_table
from millrace_spark.transforms.stamps import BATCH_TOKEN


class SourceTable:
    """One of the bronze tables of a silver table.

    Attributes:
        table: the bronze table.
        spec: the spec of the silver table, as if this were its only source.
    """

    def __init__(self, context: JobContext, spec: SilverSpec, table: str) -> None:
        self._context = context
        self.table = table
        self.spec = spec.of_source(table)
        self._name = table if spec.sources else None
        self._path = context.paths.table(table)
        # Every step of a batch reads these; for certified versions they do not change in the meantime.
        self._replaced_files = cache(context.ops.ledger.replaced_files)
        self._rewound = cache(context.ops.ledger.rewound)
        self._read_batches = cache(context.ops.ledger.batches)

    def replaced_files(self, sources: BatchSources) -> tuple[str, ...]:
        """Return the landing files whose rows were replaced, or undone, in the versions that a batch reads."""
        after, upto = sources.ranges[self.table]
        return () if after is None else self._replaced_files(self.table, sources.source_ids[self.table], after, upto)

    def has_replaced_rows(self, sources: BatchSources) -> bool:
        """Whether rows that earlier batches may have read do not count any more: of replaced files, deleted, or all."""
        return self.table in sources.rebuilt or bool(self.replaced_files(sources)) or self.has_deletions(sources)

    def has_deletions(self, sources: BatchSources) -> bool:
        """Whether a batch reads versions in which single rows of the table were deleted."""
        return any(batch.intent.sources.deletes for batch in self._batches(sources))

    def erased_rows(self, sources: BatchSources) -> int | None:
        """Return how many rows erasures have deleted in the versions that a batch reads; None without an erasure."""
        erased = [batch for batch in self._batches(sources) if batch.intent.sources.erases]
        closed = (self._context.ops.ledger.closed_rows(batch) for batch in erased)
        return sum(rows.deleted for rows in closed if rows) if erased else None

    def replaced_places(self, sources: BatchSources) -> tuple[str, ...]:
        """Return the same files as the rows of the silver table name them in `_source`."""
        return tuple(place_in(self._name, file) for file in self.replaced_files(sources))

    @property
    def first_place(self) -> str:
        """How `_source` begins in all rows of the source; empty for the only source."""
        return place_in(self._name, "")

    def rows(self, session: SparkSession, sources: BatchSources) -> DataFrame:
        """Return all rows up to the version that a batch reads."""
        return self._named(read_version(session, self._path, sources.ranges[self.table][1]))

    def removed_rows(self, session: SparkSession, sources: BatchSources) -> DataFrame | None:
        """Return the rows that the table lost in the versions that a batch reads.

        None if the table does not have the changes of these versions any more.
        """
        after, upto = sources.ranges[self.table]
        removed = None if after is None else read_removed(session, self._path, after, upto)
        return None if removed is None else self._named(removed)

    def has_arrived(self, sources: BatchSources) -> Column:
        """Return true for a row that the table gained in the versions that a batch reads; false for an earlier one.

        True also for a row that another tool wrote, without a token: nobody has judged it for sure.
        """
        after, upto = sources.ranges[self.table]
        if after is None:
            return F.lit(True)
        _, batches = self._rewound(self.table, sources.source_ids[self.table], after, upto)
        # Of no tokens `isin` is false for null, too.
        return F.col(BATCH_TOKEN).isNull() | F.col(BATCH_TOKEN).isin([batch.token for batch in batches])

    def rows_of_batch(self, session: SparkSession, sources: BatchSources, again: Iterable[datetime]) -> DataFrame:
        """Return the new rows, and all rows of the intervals `again`; without waiting intervals."""
        rows = self._new_rows(session, sources)
        if not (starts := set(again)):
            return rows
        others = rows.where(~of_intervals({*starts, *sources.waiting}))
        return others.unionByName(self.rows(session, sources).where(of_intervals(starts)))

    def _new_rows(self, session: SparkSession, sources: BatchSources) -> DataFrame:
        """Return the appended rows; for a replaced file, which may have come repeatedly, the rows that it has now.

        Where the changes of these versions are gone, or were not kept, or a restore or a deletion is among them, the
        batches of the rows tell which are new. A row that was read before must not come again: it may have been
        refused, and wait in quarantine.
        """
        after, upto = sources.ranges[self.table]
        has_restores = any(batch.intent.sources.restores is not None for batch in self._batches(sources))
        is_rewritten = has_restores or self.has_deletions(sources)
        appended = None if is_rewritten else read_appended(session, self._path, after, upto)
        if appended is None:
            rows = self.rows(session, sources).where(self.has_arrived(sources))
        else:
            rows = self._named(appended)
        replaced = self.replaced_files(sources)
        if not replaced:
            return rows
        of_replaced = F.col(SOURCE_FILE).isin(*replaced)
        return rows.where(~of_replaced).unionByName(self.rows(session, sources).where(of_replaced))

    def _batches(self, sources: BatchSources) -> list[Winner]:
        """Return the batches of the versions that a batch reads after an earlier one."""
        after, upto = sources.ranges[self.table]
        return [] if after is None else self._read_batches(self.table, sources.source_ids[self.table], after, upto)

    def _named(self, rows: DataFrame) -> DataFrame:
        return with_source_table(rows, self._name)


def of_intervals(starts: Iterable[datetime]) -> Column:
    """Return true for a row of these intervals."""
    return F.col("_interval_start").isin([F.lit(start).cast("timestamp") for start in starts])
