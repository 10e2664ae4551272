"""What each row of a silver batch does to its table, found before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from include.contracts.job.findings import AbsentKeys, Findings
from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import Intent
from include.control.log.stored_tables import is_table
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.silver.absent_keys import absent_from_snapshots, absent_from_table, why_absent
from spark_jobs.layers.silver.merge_counts import KeyBounds, MergeCounts, one_row
from spark_jobs.layers.silver.snapshot_keys import SnapshotKeys, snapshot_keys
from spark_jobs.layers.silver.source import SilverSource
from spark_jobs.layers.silver.tables import tombstones_of, version_before
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.session import frozen
from spark_jobs.transforms.refusals import is_accepted, row_counts
from spark_jobs.transforms.silver import changes as C
from spark_jobs.transforms.silver.history import CONTENT, periods, with_period_action
from spark_jobs.transforms.silver.retraction import RECOMPUTED
from spark_jobs.transforms.silver.snapshots import keys_due, place_of, snapshot_events
from spark_jobs.transforms.silver.ties import TIED
from spark_jobs.transforms.silver.timeline import END_AT, EVENTS, START_AT, fill_nulls, last_states, late_keys, timeline
from spark_jobs.transforms.silver.truncation import is_truncate, truncates, with_truncates


@dataclass(frozen=True)
class Rows:
    """The judged rows of a batch, and the keys of which they are all that the source holds.

    Attributes:
        judged: typed rows with their refusals.
        anew: keys that are worked out again, one row a key; None where none is.
        are_many: whether more than `FEW_KEYS` of the rows are accepted.
    """

    judged: DataFrame
    anew: DataFrame | None
    are_many: bool = False


@dataclass(frozen=True)
class Classified:
    """A batch against one version of its table.

    Attributes:
        counts: rows by what becomes of them.
        rows: the rows of the outcome with `_action`.
        bounds: literal bounds of their keys; empty where they may lie anywhere.
        absent: the keys that go, since the source holds them no more.
    """

    counts: MergeCounts
    rows: DataFrame
    bounds: KeyBounds
    absent: tuple[AbsentKeys, ...] = ()


class SilverFates:
    """The fates of a silver table's rows, by what kind of table it is."""

    def __init__(self, context: JobContext, spec: SilverSpec, source: SilverSource) -> None:
        self._context = context
        self._spec = spec
        self._source = source
        self._path = context.paths.table(spec.table)
        self._keys = {key: spec.columns[key].type for key in spec.keys}

    def rows(self, session: SparkSession, intent: Intent, version: int) -> Rows:
        """The rows of a batch, against one version of its table.

        Frozen, for two reasons: the optimizer would copy the rules' expressions into every filter above them
        (15 s for one day of flights), and Delta's MERGE refuses a source that is cached in any other way.
        """
        if self._spec.snapshot and self._spec.keeps_history:
            return Rows(frozen(self._source.of_snapshots(session, intent)), None)
        retracted = self._source.retracted(session, intent, version)
        rows = Rows(frozen(self._source.judged(session, intent, retracted)), retracted)
        if not self._spec.builds_on_earlier:
            return rows
        late = frozen(self._late(session, intent, version, rows.judged))
        if late.isEmpty():
            return rows
        anew = late if retracted is None else frozen(late.union(retracted).distinct())
        return Rows(frozen(self._source.judged(session, intent, anew)), anew)

    def classified(self, session: SparkSession, intent: Intent, version: int) -> Classified:
        """Every row of the batch with its fate against one version of the table."""
        rows = self.rows(session, intent, version)
        deletes_all = F.count(F.when(is_accepted() & is_truncate(self._spec.keys), 1)).alias("truncates")
        facts = one_row(rows.judged.agg(*row_counts(), deletes_all, *C.key_bounds(self._keys, is_accepted())))
        # What a full snapshot lacks, or the source has taken back, may lie beyond the keys of the batch's rows.
        beyond = self._spec.snapshot or rows.anew is not None or facts["truncates"]
        bounds = {} if beyond else facts
        rows = replace(rows, are_many=facts["accepted"] > C.FEW_KEYS)
        target = self._target(session, rows, version, bounds)
        if self._spec.snapshot:
            return self._of_snapshots(session, rows, intent, version, target, facts)
        found = frozen(self._with_fates(session, rows, intent, target))
        counts = MergeCounts.of(facts, rows.judged, found, self._spec.keys)
        absent: tuple[AbsentKeys, ...] = ()
        if counts.by_fate[C.ABSENT]:
            replaced = self._source.replaced_files(intent.sources)
            why = why_absent(self._spec, intent, replaced, is_truncate=bool(facts["truncates"]))
            absent = self._absent(session, found, version, why, intent)
        return Classified(counts.telling(Findings(absent=absent)), found, bounds, absent)

    def _absent(
        self, session: SparkSession, found: DataFrame, version: int, why: str, intent: Intent
    ) -> tuple[AbsentKeys, ...]:
        target = read_version(session, self._path, version)
        return tuple(absent_from_table(found, target, version, self._spec, why, intent, self._context.paths))

    def _target(self, session: SparkSession, rows: Rows, version: int, bounds: KeyBounds) -> DataFrame:
        """The target's rows that the batch can have to do with: all of them without bounds."""
        target = read_version(session, self._path, version).where(C.within(self._keys, bounds))
        if not bounds or rows.are_many:
            return target
        return C.rows_of_keys(target, rows.judged.where(is_accepted()), self._spec.keys)

    def _with_fates(self, session: SparkSession, rows: Rows, intent: Intent, target: DataFrame) -> DataFrame:
        if self._spec.keeps_history:
            return self._of_events(rows, target)
        return self._of_last_states(rows, target, self._tombstones(session, intent))

    def _of_last_states(self, rows: Rows, target: DataFrame, tombstones: DataFrame | None) -> DataFrame:
        keys = self._spec.keys
        latest, state = self._latest(rows, target), self._state(target)
        anew = None if rows.anew is None else F.coalesce(RECOMPUTED, F.lit(False))
        fates = C.with_action(latest, state, tombstones, keys, anew)
        if rows.anew is not None:
            gone = C.absent_rows(latest.select(*keys), state.join(rows.anew, list(keys), "left_semi"), keys)
            fates = fates.unionByName(gone, allowMissingColumns=True)
        if not self._spec.apply_as_truncates:
            return fates
        return with_truncates(fates, state, truncates(latest, tombstones, keys), keys)

    def _latest(self, rows: Rows, target: DataFrame) -> DataFrame:
        """The last state of each key that the batch says something of, with the events that it stands for."""
        events, keys = rows.judged.where(is_accepted()), self._spec.keys
        if not self._spec.ignore_null_updates:
            # A look at how often keys occur costs a small batch more than it spares.
            once = rows.are_many and C.repeated_keys(events, keys).isEmpty()
            latest = events.withColumn(TIED, F.lit(False)) if once else C.latest_per_key(events, keys)
            return latest.withColumn(EVENTS, F.lit(1))
        held = target.withColumn(START_AT, F.lit(None).cast("string"))
        states = last_states(fill_nulls(self._timeline(rows, held), keys, self._spec.stored_columns), keys)
        found = states.withColumn(CONTENT, C.row_hash(self._spec.stored_columns))
        return found if rows.anew is None else found.join(_marked(rows.anew), list(keys), "left")

    def _of_events(self, rows: Rows, target: DataFrame) -> DataFrame:
        keys = self._spec.keys
        current = target.where(F.col(END_AT).isNull())
        states = self._timeline(rows, current)
        if self._spec.ignore_null_updates:
            states = fill_nulls(states, keys, self._spec.stored_columns)
        touched = current.join(_keys_of(states, keys), list(keys), "left_semi")
        if rows.anew is not None:
            of_others = touched.join(rows.anew, list(keys), "left_anti")
            touched = of_others.unionByName(target.join(rows.anew, list(keys), "left_semi"))
        return self._of_history(states, touched)

    def _of_history(self, states: DataFrame, touched: DataFrame) -> DataFrame:
        """The periods of a timeline against the target's rows that they may change."""
        spec = self._spec
        sequence_by = spec.sequence_by or ("_interval_start",)
        found = periods(states, spec.keys, spec.stored_columns, spec.tracked_columns, sequence_by)
        return with_period_action(found, touched, spec.keys, by_order=spec.snapshot is None)

    def _timeline(self, rows: Rows, held: DataFrame) -> DataFrame:
        """The accepted events, on top of the target's rows of their keys; of keys that are worked out anew alone."""
        events, keys = rows.judged.where(is_accepted()), list(self._spec.keys)
        below = held.join(_keys_of(events, keys), keys, "left_semi")
        if rows.anew is not None:
            below = below.join(rows.anew, keys, "left_anti")
        return timeline(events.withColumn(EVENTS, F.lit(1)), below, keys, self._spec.stored_columns)

    def _of_snapshots(
        self,
        session: SparkSession,
        rows: Rows,
        intent: Intent,
        version: int,
        target: DataFrame,
        facts: Mapping[str, Any],
    ) -> Classified:
        spec, sources = self._spec, intent.sources
        keys = snapshot_keys(session, spec, self._source, rows.judged, facts["quarantined"], intent)
        due: DataFrame | None = None
        if spec.keeps_history:
            current = target.where(F.col(END_AT).isNull())
            before = current if sources.snapshots else None
            due = keys_due(keys.delivered, keys.starts, spec.keys, before, keys.cannot_tell)
            found = frozen(self._periods_of_snapshots(rows.judged, due, keys, target, on_top=bool(sources.snapshots)))
        else:
            found = frozen(self._of_newest_snapshot(rows.judged, keys, target, intent))
        counts = MergeCounts.of(facts, rows.judged, found, spec.keys)
        absent: tuple[AbsentKeys, ...] = ()
        if due is not None:
            absent = tuple(absent_from_snapshots(due, keys, spec, self._source, intent)) if counts.deletes else ()
        elif counts.by_fate[C.ABSENT]:
            why = why_absent(spec, intent, (), is_truncate=False)
            absent = self._absent(session, found, version, why, intent)
        new = self._source.new_snapshots(sources)
        unreadable = tuple(one for one in keys.unreadable if one.interval_start in new)
        return Classified(counts.telling(Findings(absent=absent, unreadable=unreadable)), found, {}, absent)

    def _periods_of_snapshots(
        self, rows: DataFrame, due: DataFrame, keys: SnapshotKeys, target: DataFrame, *, on_top: bool
    ) -> DataFrame:
        current = target.where(F.col(END_AT).isNull())
        events = snapshot_events(rows, due, keys.starts, self._spec.keys)
        below = current if on_top else current.limit(0)
        states = timeline(events, below, self._spec.keys, self._spec.stored_columns)
        return self._of_history(states, current if on_top else target)

    def _of_newest_snapshot(self, rows: DataFrame, keys: SnapshotKeys, target: DataFrame, intent: Intent) -> DataFrame:
        delivered = rows.where(place_of(keys.starts).isNotNull() & is_accepted())
        latest = C.latest_per_key(delivered, self._spec.keys).withColumn(EVENTS, F.lit(1))
        kept = C.with_snapshot_action(latest, self._state(target), self._spec.keys)
        if intent.sources.replay or keys.unreadable:
            return kept
        absent = C.absent_rows(keys.delivered.select(*self._spec.keys), target, self._spec.keys)
        return kept.unionByName(absent, allowMissingColumns=True)

    def _late(self, session: SparkSession, intent: Intent, version: int, rows: DataFrame) -> DataFrame:
        """The keys whose events do not simply follow on what the table holds."""
        events = rows.where(is_accepted())
        if RECOMPUTED in rows.columns:
            events = events.where(F.col(RECOMPUTED).isNull())
        if intent.sources.reprocess:  # by a spec that may have changed
            return _keys_of(events, self._spec.keys)
        held = read_version(session, self._path, version)
        if self._spec.keeps_history:
            held = held.where(F.col(END_AT).isNull())
        return late_keys(events, held, self._tombstones(session, intent), self._spec.keys)

    def _state(self, target: DataFrame) -> DataFrame:
        return target.select(*self._spec.keys, *C.ORDER, CONTENT)

    def _tombstones(self, session: SparkSession, intent: Intent) -> DataFrame | None:
        table = tombstones_of(self._spec, self._context.paths, intent.table_id)
        if not is_table(table.path):
            return None
        return read_version(session, table.path, version_before(table, intent))


def _keys_of(rows: DataFrame, keys: list[str] | tuple[str, ...]) -> DataFrame:
    return rows.select(*keys).distinct()


def _marked(keys: DataFrame) -> DataFrame:
    return keys.withColumn(RECOMPUTED, F.lit(True))
