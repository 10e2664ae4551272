"""The rows that earlier batches of a silver table have read: each is refused if and only if it was refused then."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.expectation import Action
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.changes.last_reads import last_reads
from millrace.control.changes.spec_changes import Effect, spec_changes
from millrace.control.ledger.spec_history import document_of
from millrace.control.log.batch import Intent
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.silver.source_table import SourceTable
from millrace_spark.protocol.secondary import belongs_to
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.received import RECEIVED, as_received, is_received
from millrace_spark.transforms.refusals import is_dropped
from millrace_spark.transforms.silver.references import refuse_quarantined
from millrace_spark.transforms.silver.silver import silver_rows
from millrace_spark.transforms.stamps import BATCH_TOKEN


class EarlierRows:
    """Judge rows that earlier batches have read as these did, by other rules than those of the present spec.

    Otherwise, after a change of rules, a row would be in the table and in quarantine, or in neither.
    """

    def __init__(self, context: JobContext, spec: SilverSpec) -> None:
        self._context = context
        self._spec = spec

    def have_other_rules(self, intent: Intent) -> bool:
        """Whether batches of the table followed specs that may have refused other rows."""
        now = document_of(self._context.spec)
        return any(
            change.effect is Effect.RECOMPUTE
            for earlier in self._context.ops.specs.of(intent.table, intent.table_id).values()
            for change in spec_changes(earlier, now)
        )

    def judged(self, session: SparkSession, intent: Intent, source: SourceTable, bronze: DataFrame) -> DataFrame:
        """Return `silver_rows` of earlier rows of a source.

        Refused are those in quarantine, and those that the rules with `action: drop` of the batch that read them drop.
        """
        rows = silver_rows(bronze, source.spec.model_copy(update={"expectations": ()}), received_of(bronze))
        refused = list(self._dropped(intent, source, bronze))
        path = self._context.paths.quarantine(self._spec.table)
        if is_table(path):
            stored = read_version(session, path, latest_version(path)).where(belongs_to(intent.table_id))
            refused.append(stored.select(F.col("received").alias(RECEIVED)))
        if refused:
            rows = refuse_quarantined(rows, reduce(DataFrame.union, refused))
        return rows.drop(RECEIVED)

    def _dropped(self, intent: Intent, source: SourceTable, bronze: DataFrame) -> Iterator[DataFrame]:
        """Yield the earlier rows, as `RECEIVED`, that were dropped, for each spec that drops rows."""
        sources, by_spec = intent.sources, defaultdict[str, list[str]](list)
        of_source = source.table, sources.source_ids[source.table], sources.ranges[source.table][1]
        for load, spec_hash in last_reads(self._context.ops.ledger, intent.table, intent.table_id, *of_source):
            by_spec[spec_hash].append(load.token)
        for spec_hash, tokens in by_spec.items():
            spec = self._context.ops.specs.spec(intent.table, intent.table_id, spec_hash) or self._spec
            if isinstance(spec, SilverSpec) and any(rule.action is Action.DROP for rule in spec.expectations):
                loaded = bronze.where(F.col(BATCH_TOKEN).isin(*tokens))
                rows = silver_rows(loaded, spec.of_source(source.table), received_of(bronze))
                yield rows.where(is_dropped()).select(RECEIVED)


def received_of(bronze: DataFrame) -> Column:
    """Return a row of a source as silver receives it, as `RECEIVED`."""
    return as_received(filter(is_received, bronze.columns)).alias(RECEIVED)
