"""The references of a silver table: row rules that look into another table, at the version that the batch has pinned.

A reference judges a row when it arrives, and each time it is replayed. A row that was accepted is never judged again:
a key which the other table deletes later takes no row with it (ADR 50).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import BatchSources, Intent, PinnedTable
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.planning.source_ranges import require_same_sources
from millrace.errors import BadInputError
from millrace_spark.delta_io.reads import read_version
from millrace_spark.protocol.secondary import belongs_to
from millrace_spark.quality.fused.comparisons import type_errors
from millrace_spark.quality.fused.other_tables import Reference
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import RECEIVED
from millrace_spark.transforms.silver.references import EARLIER, refuse_as_before, refuse_unknown


class References:
    """Judge the rows of a silver table by its references."""

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec

    def judge(self, session: SparkSession, rows: DataFrame, pinned: Mapping[str, PinnedTable]) -> DataFrame:
        """Refuse the rows whose values the pinned versions lack.

        A reference to a table that is not pinned came into the spec after the batch: it judges no row of it.

        Raises:
            BadInputError: a pinned table was replaced by another one, or a column has another type there.
        """
        require_same_sources(BatchSources(references=dict(pinned)), self._context.paths)
        for rule in self._spec.references:
            [table] = rule.other_tables
            if table not in pinned:
                continue
            others = read_version(session, self._context.paths.table(table), pinned[table].version)
            own, theirs = tuple(rule.checked_columns), tuple(rule.referenced_columns)
            if error := type_errors(rows.schema, Reference(own, table, theirs, others)):
                way_out = f"Run {table} first, or rebuild it if its spec has changed: lakehouse diff."
                raise BadInputError(f"{self._spec.table}: {rule.rule}: {error}", way_out)
            rows = refuse_unknown(rows, rule, others)
        return rows

    def judge_as_before(self, session: SparkSession, rows: DataFrame, intent: Intent) -> DataFrame:
        """Refuse the rows, with `RECEIVED`, that earlier batches refused: those that are in quarantine for it."""
        path = self._context.paths.quarantine(self._spec.table)
        if not is_table(path):
            return rows
        stored = read_version(session, path, latest_version(path)).where(belongs_to(intent.table_id))
        reasons = F.flatten(F.collect_set("reasons")).alias(EARLIER)
        return refuse_as_before(
            rows, self._spec.references, stored.groupBy(F.col("received").alias(RECEIVED)).agg(reasons)
        )
