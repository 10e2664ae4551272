"""Find what each row of a silver batch does to its table, before anything is written.

A batch also deletes keys that its source does not contain any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.findings import AbsentKeys, Findings
from millrace.contracts.restricted import RestrictedColumns
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Intent
from millrace.control.log.stored_tables import is_table
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.silver.merge_counts import KeyBounds, MergeCounts
from millrace_spark.layers.silver.snapshot_keys import SnapshotKeys, snapshot_keys
from millrace_spark.layers.silver.source import SilverSource
from millrace_spark.layers.silver.tables import tombstones_of, version_before
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.session import freeze
from millrace_spark.transforms.refusals import is_accepted, row_counts
from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.changes import ABSENT
from millrace_spark.transforms.silver.history import CONTENT, periods, with_period_action
from millrace_spark.transforms.silver.partitions import foreign_partitions, is_own, require_own_partitions
from millrace_spark.transforms.silver.retraction import RECOMPUTED
from millrace_spark.transforms.silver.snapshots import DUE_IN, IS_DELIVERED, keys_due, place_of, snapshot_events
from millrace_spark.transforms.silver.ties import TIED, key_in_words
from millrace_spark.transforms.silver.timeline import (
    END_AT,
    EVENTS,
    START_AT,
    fill_nulls,
    last_states,
    late_keys,
    timeline,
)
from millrace_spark.transforms.silver.truncation import is_truncate, truncates, with_truncates


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch, and the keys that are computed again from all rows of the source.

    Attributes:
        checked: rows with their types and refusals, cached; of recomputed keys all rows that the source has.
        recomputed_keys: these keys, one row per key; None for no keys.
        are_many: whether more than `FEW_KEYS` of the rows are accepted.
    """

    checked: DataFrame
    recomputed_keys: DataFrame | None
    are_many: bool = False


@dataclass(frozen=True)
class BatchActions:
    """What a batch does to one version of its table.

    Attributes:
        counts: the row counts.
        rows: the rows with `_action`, cached.
        bounds: literal bounds of their keys; empty if the keys can be anywhere.
        absent: the keys that are deleted because the source does not contain them any more.
    """

    counts: MergeCounts
    rows: DataFrame
    bounds: KeyBounds
    absent: tuple[AbsentKeys, ...] = ()


class RowActions:
    """Find the row actions of a silver table, by what kind of table it is."""

    def __init__(self, context: JobContext, spec: SilverSpec, source: SilverSource) -> None:
        self._context = context
        self._spec = spec
        self._source = source
        self._path = context.paths.table(spec.table)
        self._keys = {key: spec.columns[key].type for key in spec.keys}

    @property
    def _restricted(self) -> RestrictedColumns:
        return self._context.restricted(self._spec.table)

    def read_rows(self, session: SparkSession, intent: Intent, version: int) -> BatchRows:
        """Read the rows of a batch that writes to this version of its table.

        The rows are cached, for two reasons: the optimizer would copy the rules' expressions into every filter above
        them (15 s for one day of flights), and Delta's MERGE refuses a source that is cached in any other way.
        """
        if self._spec.snapshot and self._spec.keeps_history:
            return BatchRows(freeze(self._source.rows_of_snapshots(session, intent)), None)
        retracted = self._source.retracted_keys(session, intent, version)
        rows = BatchRows(freeze(self._source.rows_of_batch(session, intent, retracted)), retracted)
        if not self._spec.builds_on_earlier:
            return rows
        late = freeze(self._late_keys(session, intent, version, rows.checked))
        if late.isEmpty():
            return rows
        recomputed = late if retracted is None else freeze(late.union(retracted).distinct())
        return BatchRows(freeze(self._source.rows_of_batch(session, intent, recomputed)), recomputed)

    def find(self, session: SparkSession, intent: Intent, version: int) -> BatchActions:
        """Find the action of every row of the batch on one version of the table.

        Raises:
            BadInputError: a source of a table with `concurrent_by` delivers rows of other partitions than its own.
        """
        rows = self.read_rows(session, intent, version)
        truncate_count = F.count(F.when(is_accepted() & is_truncate(self._spec.keys), 1)).alias("truncates")
        bounds_of_keys = C.key_bounds(self._keys, is_accepted())
        foreign = foreign_partitions(self._spec, is_accepted())
        totals = rows.checked.agg(*row_counts(), truncate_count, *bounds_of_keys, *foreign).collect()[0].asDict()
        require_own_partitions(self._spec, totals, self._restricted)
        # Keys that a full snapshot lacks, or that the source has retracted, can be outside the bounds of the batch.
        is_unbounded = self._spec.snapshot or rows.recomputed_keys is not None or totals["truncates"]
        bounds = {} if is_unbounded else totals
        rows = replace(rows, are_many=totals["accepted"] > C.FEW_KEYS)
        # The target's rows that the batch can change: all of them without bounds.
        target = read_version(session, self._path, version).where(is_own(self._spec) & C.within(self._keys, bounds))
        if bounds and not rows.are_many:
            target = C.rows_of_keys(target, rows.checked.where(is_accepted()), self._spec.keys)
        if self._spec.snapshot:
            return self._of_snapshots(session, rows, intent, version, target, totals)
        if self._spec.keeps_history:
            actions = freeze(self._of_periods(rows, target))
        else:
            actions = freeze(self._of_last_states(rows, target, self._tombstones(session, intent)))
        counts = MergeCounts.of(totals, rows.checked, actions, self._spec.keys, self._restricted)
        absent: tuple[AbsentKeys, ...] = ()
        if counts.by_action[C.ABSENT]:
            replaced = self._source.replaced_files(intent.sources)
            deleted = self._source.sources_with_deletions(intent.sources)
            why = why_absent(self._spec, intent, replaced, deleted, has_truncate=bool(totals["truncates"]))
            absent = self._absent(session, actions, version, why, intent)
        return BatchActions(counts.with_findings(Findings(absent=absent)), actions, bounds, absent)

    def _absent(
        self, session: SparkSession, actions: DataFrame, version: int, why: str, intent: Intent
    ) -> tuple[AbsentKeys, ...]:
        target = read_version(session, self._path, version)
        erased = self._source.erased_rows(intent.sources)
        return tuple(absent_from_table(actions, target, version, self._spec, why, intent, self._context, erased))

    def _of_last_states(self, rows: BatchRows, target: DataFrame, tombstones: DataFrame | None) -> DataFrame:
        """Return the actions of a table that keeps the last state of each key (SCD type 1)."""
        keys, recomputed = self._spec.keys, rows.recomputed_keys
        latest, state = self._latest(rows, target), self._state(target)
        recompute = None if recomputed is None else F.coalesce(RECOMPUTED, F.lit(False))
        actions = C.with_action(latest, state, tombstones, keys, recompute)
        if recomputed is not None:
            absent = C.absent_rows(latest.select(*keys), state.join(recomputed, list(keys), "left_semi"), keys)
            actions = actions.unionByName(absent, allowMissingColumns=True)
        if not self._spec.apply_as_truncates:
            return actions
        return with_truncates(actions, state, truncates(latest, tombstones, keys), keys)

    def _latest(self, rows: BatchRows, target: DataFrame) -> DataFrame:
        """Return the last state of each key in the batch, with `_events`, the number of events that it results from."""
        events, keys = rows.checked.where(is_accepted()), self._spec.keys
        if not self._spec.ignore_null_updates:
            # In a small batch, a check for repeated keys costs more than it saves.
            is_unique = rows.are_many and C.repeated_keys(events, keys).isEmpty()
            latest = events.withColumn(TIED, F.lit(False)) if is_unique else C.latest_per_key(events, keys)
            return latest.withColumn(EVENTS, F.lit(1))
        stored = target.withColumn(START_AT, F.lit(None).cast("string"))
        states = last_states(fill_nulls(self._timeline(rows, stored), keys, self._spec.stored_columns), keys)
        latest = states.withColumn(CONTENT, C.row_hash(self._spec.stored_columns, self._spec.nested_columns))
        if rows.recomputed_keys is None:
            return latest
        return latest.join(rows.recomputed_keys.withColumn(RECOMPUTED, F.lit(True)), list(keys), "left")

    def _of_periods(self, rows: BatchRows, target: DataFrame) -> DataFrame:
        """Return the actions of a table that keeps every state of a key as a period (SCD type 2)."""
        keys, recomputed = self._spec.keys, rows.recomputed_keys
        current = target.where(F.col(END_AT).isNull())
        states = self._timeline(rows, current)
        if self._spec.ignore_null_updates:
            states = fill_nulls(states, keys, self._spec.stored_columns)
        touched = current.join(_keys_of(states, keys), list(keys), "left_semi")
        if recomputed is not None:
            of_other_keys = touched.join(recomputed, list(keys), "left_anti")
            touched = of_other_keys.unionByName(target.join(recomputed, list(keys), "left_semi"))
        return self._compare_periods(states, touched)

    def _compare_periods(self, states: DataFrame, touched: DataFrame) -> DataFrame:
        """Compare the periods of a timeline with the target's rows that they may change."""
        spec = self._spec
        sequence_by, nested = spec.sequence_by or ("_interval_start",), spec.nested_columns
        new = periods(states, spec.keys, spec.stored_columns, spec.tracked_columns, sequence_by, nested)
        return with_period_action(new, touched, spec.keys, by_order=spec.snapshot is None)

    def _timeline(self, rows: BatchRows, stored: DataFrame) -> DataFrame:
        """Return the timeline of the accepted events and the stored rows of their keys.

        The stored rows of recomputed keys are left out.
        """
        events, keys = rows.checked.where(is_accepted()), list(self._spec.keys)
        earlier = stored.join(_keys_of(events, keys), keys, "left_semi")
        if rows.recomputed_keys is not None:
            earlier = earlier.join(rows.recomputed_keys, keys, "left_anti")
        return timeline(events.withColumn(EVENTS, F.lit(1)), earlier, keys, self._spec.stored_columns)

    def _of_snapshots(
        self,
        session: SparkSession,
        rows: BatchRows,
        intent: Intent,
        version: int,
        target: DataFrame,
        totals: Mapping[str, Any],
    ) -> BatchActions:
        """Find the row actions of full snapshots."""
        spec, sources = self._spec, intent.sources
        keys = snapshot_keys(session, spec, self._source, rows.checked, totals["quarantined"], intent)
        due: DataFrame | None = None
        if spec.keeps_history:
            cannot_tell = {unreadable.interval_start for unreadable in keys.unreadable}
            before = target.where(F.col(END_AT).isNull()) if sources.snapshots else None
            due = keys_due(keys.delivered, keys.starts, spec.keys, before, cannot_tell)
            follows = bool(sources.snapshots)
            actions = freeze(self._periods_of_snapshots(rows.checked, due, keys, target, follows=follows))
        else:
            actions = freeze(self._of_newest_snapshot(rows.checked, keys, target, intent))
        counts = MergeCounts.of(totals, rows.checked, actions, spec.keys, self._restricted, of_snapshot=True)
        absent: tuple[AbsentKeys, ...] = ()
        if due is not None:
            found = absent_from_snapshots(due, keys, spec, self._source, intent, self._restricted)
            absent = tuple(found) if counts.deletes else ()
        elif counts.by_action[C.ABSENT]:
            why = why_absent(spec, intent, has_truncate=False)
            absent = self._absent(session, actions, version, why, intent)
        new = self._source.new_snapshots(sources)
        unreadable = tuple(of_snapshot for of_snapshot in keys.unreadable if of_snapshot.interval_start in new)
        findings = Findings(absent=absent, unreadable=unreadable)
        return BatchActions(counts.with_findings(findings), actions, {}, absent)

    def _periods_of_snapshots(
        self, rows: DataFrame, due: DataFrame, keys: SnapshotKeys, target: DataFrame, *, follows: bool
    ) -> DataFrame:
        """Return the actions of consecutive snapshots; if they do not follow the target's rows, they replace them."""
        current = target.where(F.col(END_AT).isNull())
        events = snapshot_events(rows, due, keys.starts, self._spec.keys)
        states = timeline(events, current if follows else current.limit(0), self._spec.keys, self._spec.stored_columns)
        return self._compare_periods(states, current if follows else target)

    def _of_newest_snapshot(self, rows: DataFrame, keys: SnapshotKeys, target: DataFrame, intent: Intent) -> DataFrame:
        """Return the actions of the newest snapshot on a table that keeps the last state of each key."""
        delivered = rows.where(place_of(keys.starts).isNotNull() & is_accepted())
        latest = C.latest_per_key(delivered, self._spec.keys).withColumn(EVENTS, F.lit(1))
        actions = C.with_snapshot_action(latest, self._state(target), self._spec.keys)
        if intent.sources.replay or keys.unreadable:
            return actions
        absent = C.absent_rows(keys.delivered.select(*self._spec.keys), target, self._spec.keys)
        return actions.unionByName(absent, allowMissingColumns=True)

    def _late_keys(self, session: SparkSession, intent: Intent, version: int, rows: DataFrame) -> DataFrame:
        """Return the keys that have events which do not simply follow the state in the table."""
        events = rows.where(is_accepted())
        if RECOMPUTED in rows.columns:
            events = events.where(F.col(RECOMPUTED).isNull())
        if intent.sources.reprocess:  # The spec may have changed since.
            return _keys_of(events, self._spec.keys)
        current = read_version(session, self._path, version)
        if self._spec.keeps_history:
            current = current.where(F.col(END_AT).isNull())
        return late_keys(events, current, self._tombstones(session, intent), self._spec.keys)

    def _state(self, target: DataFrame) -> DataFrame:
        return target.select(*self._spec.keys, *C.ORDER, CONTENT)

    def _tombstones(self, session: SparkSession, intent: Intent) -> DataFrame | None:
        table = tombstones_of(self._spec, self._context.paths, intent.table_id)
        if not is_table(table.path):
            return None
        return read_version(session, table.path, version_before(table, intent))


def _keys_of(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    return rows.select(*keys).distinct()


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
    erased: int | None = None,
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
        erased: the rows that erasures have deleted from the sources, whose keys nobody may see; None if none did.
    """
    absent, of_keys = actions.where(F.col("_action") == ABSENT), table_rows(context.paths.table(spec.table), version)
    if spec.keeps_history:
        keys = list(spec.keys)
        absent = absent.join(actions.where(F.col("_action") != ABSENT), keys, "left_anti").select(*keys).distinct()
        of_keys = target.select(*keys).distinct().count()
    if number := absent.count():
        at = intent.sources.snapshot_at if spec.snapshot else None
        samples = _samples(absent, spec, context.restricted(spec.table)) if erased is None else ()
        yield AbsentKeys(keys=number, of_keys=of_keys, why=why, samples=samples, interval_start=at, erased=erased or 0)


def why_absent(
    spec: SilverSpec,
    intent: Intent,
    replaced: tuple[str, ...] = (),
    deleted: tuple[str, ...] = (),
    *,
    has_truncate: bool,
) -> str:
    """Return why a batch deletes keys that no event deletes.

    Args:
        spec: the spec of the table.
        intent: the batch.
        replaced: the landing files that were replaced.
        deleted: the sources in which a repair or an erasure has deleted rows.
        has_truncate: whether the batch has a truncate.
    """
    if spec.snapshot:
        return f"the full snapshot from {intent.sources.snapshot_at:{MINUTE}} lacks them"
    if has_truncate:
        return "a truncate deletes them"
    if rebuilt := intent.sources.rebuilt:
        return f"{' and '.join(rebuilt)} was rebuilt without them"
    if deleted and not replaced:
        return f"their rows were deleted from {' and '.join(deleted)}"
    if not replaced:
        return "none of their events is left"
    more = f" (and {len(replaced) - 1} more)" if len(replaced) > 1 else ""
    return f"{replaced[0]}{more} was delivered again without them, or undone by a restore"


def _samples(keys: DataFrame, spec: SilverSpec, restricted: RestrictedColumns) -> tuple[str, ...]:
    rows = keys.select(key_in_words(spec.keys, restricted).alias("key")).limit(_SAMPLES).collect()
    return tuple(row["key"] for row in rows)
