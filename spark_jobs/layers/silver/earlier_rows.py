"""The rows that earlier batches of a silver table have read: each is refused if and only if it was refused then."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.spec.expectation import Action
from include.contracts.spec.table_spec import SilverSpec
from include.control.changes.spec_changes import Effect, spec_changes
from include.control.ledger.spec_history import document_of
from include.control.log.batch import Intent
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import is_table
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.silver.source_table import SourceTable
from spark_jobs.protocol.secondary import belongs_to
from spark_jobs.runtime.context import JobContext
from spark_jobs.transforms.received import RECEIVED, as_received, is_received
from spark_jobs.transforms.refusals import is_dropped
from spark_jobs.transforms.silver.references import refuse_quarantined
from spark_jobs.transforms.silver.silver import silver_rows
from spark_jobs.transforms.stamps import BATCH_TOKEN


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
        for spec_hash, tokens in self._loads_by_spec(intent, source).items():
            spec = self._context.ops.specs.spec(intent.table, intent.table_id, spec_hash) or self._spec
            if isinstance(spec, SilverSpec) and any(rule.action is Action.DROP for rule in spec.expectations):
                loaded = bronze.where(F.col(BATCH_TOKEN).isin(*tokens))
                rows = silver_rows(loaded, spec.of_source(source.table), received_of(bronze))
                yield rows.where(is_dropped()).select(RECEIVED)

    def _loads_by_spec(self, intent: Intent, source: SourceTable) -> dict[str, list[str]]:
        """Return `spec_hash` -> the tokens of the batches of a source that batches of this spec have read last."""
        ledger, source_id = self._context.ops.ledger, intent.sources.source_ids[source.table]
        loads = ledger.batches(source.table, source_id, -1, intent.sources.ranges[source.table][1])
        versions = [load.version for load in loads]
        of_interval = defaultdict[datetime, list[int]](list)
        for at, load in enumerate(loads):
            of_interval[load.intent.interval_start].append(at)
        readers = [""] * len(loads)
        for batch in ledger.batches(intent.table, intent.table_id, -1):
            sources = batch.intent.sources
            if sources.replay or sources.source_ids.get(source.table) != source_id:
                continue
            after, upto = sources.ranges[source.table]
            first, end = bisect_right(versions, -1 if after is None else after), bisect_right(versions, upto)
            again = (at for start in read_again(batch.intent) for at in of_interval[start] if at < end)
            for at in (*range(first, end), *again):
                readers[at] = batch.intent.spec_hash
        by_spec = defaultdict[str, list[str]](list)
        for spec_hash, load in zip(readers, loads, strict=True):
            by_spec[spec_hash].append(load.token)
        return by_spec


def read_again(intent: Intent) -> tuple[datetime, ...]:
    """Return the intervals whose rows a batch reads from the source completely, also rows that were read before."""
    sources = intent.sources
    if sources.replay:
        return ()
    if sources.snapshot_at:
        return tuple({sources.snapshot_at, *sources.released})
    return (intent.interval_start,) if sources.reprocess else ()


def received_of(bronze: DataFrame) -> Column:
    """Return a row of a source as silver receives it, as `RECEIVED`."""
    return as_received(filter(is_received, bronze.columns)).alias(RECEIVED)
