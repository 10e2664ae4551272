"""Find the rows that a repair deletes or replaces, with the engine and the condition that do it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.counted import counted
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.values import TABLE
from millrace.control.ledger.repairs import RESTORE
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.errors import RepairError, first_line
from millrace.repair.restore_plan import keys_of
from millrace.repair.row_repair import AskedRowRepair, FoundRows, PartitionRows, RowRepairPlan
from millrace_spark.delta_io.reads import read_version
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.stamps import STAMP_COLUMNS

_SAMPLES = 5


@dataclass(frozen=True)
class RowRepair:
    """A repair of the job's table, as a person asks for it.

    Attributes:
        context: the job's.
        asked: what the person asks for.
    """

    context: JobContext
    asked: AskedRowRepair

    def plan(self, session: SparkSession, newest: int, table_id: str) -> RowRepairPlan:
        """Return what the repair of the newest version would change.

        Raises:
            RepairError: it would change nothing, or the condition or the new rows do not fit the table.
        """
        try:
            found = self._found(session, newest)
        except AnalysisException as error:
            cause = f"{self._table}: the condition or the source does not fit the table: {first_line(error)}"
            raise RepairError(cause, "Nothing was written.") from error
        source = f"{self._source[0]}@{self._source[2]}" if self._source else ""
        return self.asked.plan(newest, table_id, found, source, self.context.catalog, self.context.ops)

    def new_rows(self, session: SparkSession) -> DataFrame:
        """Return the rows of the source: of the table itself those of the condition, of another one all."""
        if self._source is None:
            raise ValueError(f"{self._table}: a deletion has no new rows")
        name, path, version = self._source
        rows = read_version(session, path, version)
        return (rows.where(self.condition) if name == self._table else rows).select(*self.asked.columns)

    @property
    def condition(self) -> Column:
        """True for the rows that go; never null."""
        return F.coalesce(F.expr(self.asked.request.where), F.lit(False))

    @property
    def _table(self) -> str:
        return self.asked.spec.table

    @property
    def _source(self) -> tuple[str, LakePath, int] | None:
        """Return the source: its name, its folder, and its version, by default the one that readers use."""
        name, _, version = self.asked.request.source.partition("@")
        if not name:
            return None
        way_out = "Name a table, or a version of it: silver.orders_fixed@3."
        if not TABLE.fullmatch(name):
            raise RepairError(f"{self._table}: {name!r} is no name of a table to take rows from", way_out)
        path = self.context.paths.table(name)
        if name == self._table and not version:
            raise RepairError(f"{self._table}: its own rows replace nothing", f"{way_out[:-1]}, or {RESTORE} it.")
        if not is_table(path):
            raise RepairError(f"{self._table}: there is no table {name} to take rows from", way_out)
        number = int(version) if version.isdecimal() else None if version else self.context.ops.gates.certified(name)
        if number is None or number > latest_version(path):
            raise RepairError(f"{self._table}: {name} has no version {version or 'that readers use'}", way_out)
        return name, path, number

    def _found(self, session: SparkSession, newest: int) -> FoundRows:
        path = self.context.paths.table(self._table)
        rows = read_version(session, path, newest)
        inserted = self._checked_new_rows(session, rows) if self._source else 0
        restricted, shown = self.context.restricted(self._table), keys_of(self.asked.spec)
        shown = tuple(key for key in shown if key not in restricted)
        return FoundRows(table_rows(path, newest), tuple(self._partitions(rows)), self._samples(rows, shown), inserted)

    def _partitions(self, rows: DataFrame) -> Iterator[PartitionRows]:
        partitions, restricted = self.asked.partitioned_by, self.context.restricted(self._table)
        per_file = rows.groupBy(*partitions, "_metadata.file_path", "_metadata.file_size").agg(
            F.count(F.lit(1)).alias("all"), F.count(F.when(self.condition, 1)).alias("gone")
        )
        sizes = F.sum(F.col("file_size") * F.col("gone") / F.col("all")).cast("bigint")
        of_partitions = (
            per_file.where("gone > 0")
            .groupBy(*partitions)
            .agg(
                F.sum("gone").alias("gone"),
                sizes.alias("size"),
                F.count(F.lit(1)).alias("files"),
                F.count(F.when(F.col("gone") == F.col("all"), 1)).alias("whole"),
            )
        )
        texts = (F.col(name).cast("string").alias(name) for name in partitions)
        found = of_partitions.where("files > 0").select(*texts, "gone", "size", "files", "whole").collect()
        for row in sorted(found, key=lambda row: [row[name] or "" for name in partitions]):
            partition = {name: restricted.shown(name, row[name]) for name in partitions}
            yield PartitionRows(partition, row["gone"], row["size"], row["files"], row["whole"])

    def _samples(self, rows: DataFrame, keys: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
        if not keys:
            return ()
        texts = [F.col(key).cast("string").alias(key) for key in keys]
        chosen = rows.where(self.condition).select(*texts).sort(*keys).limit(_SAMPLES).collect()
        return tuple(row.asDict() for row in chosen)

    def _checked_new_rows(self, session: SparkSession, rows: DataFrame) -> int:
        """Return the number of new rows.

        Raises:
            RepairError: some of them are outside the condition, or would double a key.
        """
        new, table = self.new_rows(session), self._table
        self._require_same_columns(new, rows)
        keys = [key for key in keys_of(self.asked.spec) if key in self.asked.columns]
        if outside := new.where(~self.condition).count():
            cause = f"{table}: {counted(outside, 'row')} of {self.asked.request.source} do not fulfil the condition"
            raise RepairError(cause, f"{self._such_as(new.where(~self.condition), keys)}Widen the condition.")
        if keys:
            doubled = new.groupBy(*keys).count().where("count > 1").select(*keys)
            kept = rows.where(~self.condition).join(new.select(*keys), keys, "left_semi").select(*keys)
            if number := doubled.union(kept).count():
                cause = f"{table}: {counted(number, 'key')} would be there twice"
                raise RepairError(
                    cause, f"{self._such_as(doubled.union(kept), keys)}Correct the source or the condition."
                )
        return new.count()

    def _require_same_columns(self, new: DataFrame, rows: DataFrame) -> None:
        own, others = (
            {field.name: field.dataType for field in frame.schema if field.name not in STAMP_COLUMNS}
            for frame in (rows, new)
        )
        if differing := [name for name in own if own[name] != others.get(name)]:
            cause = f"{self._table}: {self.asked.request.source} has other types in {', '.join(differing)}"
            raise RepairError(cause, "Take the rows from a table with the same columns.")

    def _such_as(self, rows: DataFrame, keys: list[str]) -> str:
        restricted = self.context.restricted(self._table)
        shown = [key for key in keys if key not in restricted]
        if not shown:
            return ""
        texts = (F.col(key).cast("string").alias(key) for key in shown)
        some = rows.select(*texts).limit(_SAMPLES).collect()
        return f"Such as {'; '.join(', '.join(f'{key} {row[key]}' for key in shown) for row in some)}. "
