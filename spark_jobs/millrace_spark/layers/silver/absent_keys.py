"""The keys that a silver batch deletes because its source does not contain them any more, and the reason."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import AbsentKeys
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Intent
from millrace_spark.layers.silver.snapshot_keys import SnapshotKeys
from millrace_spark.layers.silver.source import SilverSource
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.silver.changes import ABSENT
from millrace_spark.transforms.silver.snapshots import DUE_IN, IS_DELIVERED
from millrace_spark.transforms.silver.ties import key_in_words

_SAMPLES = 3


def absent_from_snapshots(
    due: DataFrame,
    keys: SnapshotKeys,
    spec: SilverSpec,
    source: SilverSource,
    intent: Intent,
    restricted: RestrictedColumns,
) -> Iterator[AbsentKeys]:
    """Return the keys that each new snapshot of a table with history lacks, of the keys `due` in it (`keys_due`)."""
    new = source.new_snapshots(intent.sources) | ({intent.interval_start} if intent.sources.reprocess else set())
    places = [place for place, start in enumerate(keys.starts) if start in new]
    counts = F.count(F.lit(1)).alias("due"), F.count(F.when(~F.col(IS_DELIVERED), 1)).alias("absent")
    for row in due.where(F.col(DUE_IN).isin(places)).groupBy(DUE_IN).agg(*counts).sort(DUE_IN).collect():
        start = keys.starts[row[DUE_IN]]
        if row["absent"]:
            absent = due.where((F.col(DUE_IN) == row[DUE_IN]) & ~F.col(IS_DELIVERED))
            yield AbsentKeys(
                keys=row["absent"],
                of_keys=row["due"],
                why=f"the full snapshot from {start:{MINUTE}} lacks them",
                samples=_samples(absent, spec, restricted),
                interval_start=start,
            )


def absent_from_table(
    actions: DataFrame,
    target: DataFrame,
    version: int,
    spec: SilverSpec,
    why: str,
    intent: Intent,
    context: JobContext,
) -> Iterator[AbsentKeys]:
    """Return the keys that a batch removes completely from its table, though no event deletes them.

    Args:
        actions: rows with `_action`; the action of at least one row is `absent`.
        target: the rows of the table.
        version: the table version of these rows.
        spec: the table.
        why: why the keys are deleted.
        intent: the batch.
        context: the job's.
    """
    absent, of_keys = actions.where(F.col("_action") == ABSENT), table_rows(context.paths.table(spec.table), version)
    if spec.keeps_history:
        keys = list(spec.keys)
        absent = absent.join(actions.where(F.col("_action") != ABSENT), keys, "left_anti").select(*keys).distinct()
        of_keys = target.select(*keys).distinct().count()
    if number := absent.count():
        at = intent.sources.snapshot_at if spec.snapshot else None
        samples = _samples(absent, spec, context.restricted(spec.table))
        yield AbsentKeys(keys=number, of_keys=of_keys, why=why, samples=samples, interval_start=at)


def why_absent(spec: SilverSpec, intent: Intent, replaced: tuple[str, ...], *, has_truncate: bool) -> str:
    """Return why a batch deletes keys that no event deletes; `replaced` are the landing files that were replaced."""
    if spec.snapshot:
        return f"the full snapshot from {intent.sources.snapshot_at:{MINUTE}} lacks them"
    if has_truncate:
        return "a truncate deletes them"
    if rebuilt := intent.sources.rebuilt:
        return f"{' and '.join(rebuilt)} was rebuilt without them"
    more = f" (and {len(replaced) - 1} more)" if len(replaced) > 1 else ""
    return f"{replaced[0]}{more} was delivered again without them" if replaced else "none of their events is left"


def _samples(keys: DataFrame, spec: SilverSpec, restricted: RestrictedColumns) -> tuple[str, ...]:
    rows = keys.select(key_in_words(spec.keys, restricted).alias("key")).limit(_SAMPLES).collect()
    return tuple(row["key"] for row in rows)
