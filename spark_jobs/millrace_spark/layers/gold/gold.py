"""Gold: compute the changed groups again, from pinned versions of its sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.changes.table_diff import changes_since
from millrace.control.gates.conservation import rows_of_rebuild
from millrace.control.gates.restore import close_restore
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, StreamPosition, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance.health import rows_per_file
from millrace.control.planning.refresh_cost import RefreshCost, cost_before_tracing
from millrace.control.planning.source_ranges import (
    certified_sources,
    changed_ranges,
    pin_sources,
    require_same_sources,
    why_whole,
)
from millrace_spark.delta_io.reads import read_changed_rows, read_version
from millrace_spark.delta_io.row_writes import (
    EVERY_ROW,
    read_observation,
    replace_where,
    replaced_rows,
    replaced_where,
)
from millrace_spark.delta_io.tables import TableShape, shape_properties
from millrace_spark.layers.gold.query import (
    QueryRefresh,
    parts_of,
    refresh_of_query,
    refresh_of_table,
    rows_of_query,
    touched_by_lookup_of_query,
    touched_rows_of_query,
)
from millrace_spark.layers.gold.stored_types import has_order, require_stored_types
from millrace_spark.layers.gold.value_ranges import MOST_WITHOUT_RANGES, have_ranges, ranges_of
from millrace_spark.layers.own_table import ensure_own_table, require_fitting_table
from millrace_spark.protocol.batches import BatchPlan, Closing
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.groups import touched_by_lookup
from millrace_spark.transforms.stamps import STAMP_COLUMNS, with_stamp
from millrace_spark.transforms.touched_rows import Touched, touched_text
from millrace_spark.transforms.touched_spans import Ranges, spans_of
from millrace_spark.transforms.values.unstorable import require_storable


class GoldAggregate:
    """The `BatchWork` of a gold table, by the spec of the job or another one of the table."""

    def __init__(self, context: JobContext, spec: GoldSpec | None = None) -> None:
        self._context = context
        self._spec: GoldSpec = spec or context.spec  # type: ignore[assignment]
        self._path = context.paths.table(self._spec.table)
        self._observations: dict[str, Observation] = {}
        self._refresh: QueryRefresh | None = None
        self._values = self._ranges = 0

    def ensure_table(self) -> None:
        """Create the table with the types that its expressions have over the certified sources, or change it.

        Raises:
            NotReadyError: a source has no certified version yet.
            BadInputError: the table does not fit the spec.
        """
        changes = require_fitting_table(self._context, self._spec)
        if is_table(self._path) and not changes.needs_run:
            return
        certified = certified_sources(self._spec, self._context.ops.gates, self._context.paths)
        with self._context.open_session({}) as session:
            shape = self._shape(self._all_groups(session, certified, None))
        ensure_own_table(self._context, shape)

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Plan to read each source's versions since the last batch; with `reprocess` or a new measure, all of them."""
        paths, ops = self._context.paths, self._context.ops
        # A new measure is missing in all groups, and a new query has other rows.
        reprocess = self._context.args.reprocess or changes_since(self._spec, position.last, ops).computes_all_groups
        sources = pin_sources(self._spec, paths, ops.gates, position)
        if not changed_ranges(self._spec, sources, paths) and not reprocess:
            return None
        return BatchPlan(sources.model_copy(update={"reprocess": reprocess}))

    def write(self, session: SparkSession, intent: Intent, plan: BatchPlan) -> None:
        """Replace the touched groups in one commit."""
        newest = latest_version(self._path)
        cost = cost_before_tracing(self._path, newest, intent.sources.ranges, self._context.paths)
        touched, reason = self._chosen(session, intent.sources, cost, newest)
        if reason:
            self._context.notes.append(f"{self._spec.table}: the whole table was computed: {reason}")
        groups = self._groups_of(session, intent.sources, touched)
        ensure_own_table(self._context, self._shape(groups))
        observation = Observation()
        stored = require_storable(groups, self._spec.partitioned_by, self._context.restricted(self._spec.table))
        rows = with_stamp(stored, intent).observe(observation, F.count(F.lit(1)).alias("groups"))
        # Each task sorts its own rows, so that a later refresh of few values has to rewrite few files (ADR 42).
        if order := self._order(session, intent.sources, rows):
            rows = rows.sortWithinPartitions(*order)
        cut = rows_per_file(self._spec, cost.table, table_rows(self._path, newest), len(groups.columns), cost.sources)
        replace_where(rows, self._path, self._predicate(groups, touched), cut)
        self._observations[intent.token] = observation

    def close(self, winner: Winner) -> Closing:
        """Count the computed groups, and how many rows of the table changed."""
        if winner.intent.sources.restores is not None:
            return Closing(close_restore(winner, self._context.paths))
        if winner.intent.sources.rebuild:
            return Closing(rows_of_rebuild(self._path, winner))
        written, removed = replaced_rows(self._path, winner.version)
        observation = self._observations.get(winner.token)
        if observation and (counts := read_observation(observation)):
            computed = counts["groups"]
        else:
            replaced = replaced_where(self._path, winner.version)
            with self._context.open_session({}) as session:
                computed = read_version(session, self._path, winner.version).where(replaced).count()
        # Delta replaces the row of each computed group: only the difference in number was inserted or deleted.
        updated = min(written, removed)
        changes = {"inserted": written - updated, "updated": updated, "deleted": removed - updated}
        return Closing(RowCounts(read=computed, applied=written, **changes))

    def from_scratch(self, session: SparkSession, sources: BatchSources) -> DataFrame:
        """Return all groups, computed from exactly the versions that a batch has read.

        Raises:
            BadInputError: a source was replaced by another table.
        """
        return self._groups_of(session, sources, None)

    def _groups_of(self, session: SparkSession, sources: BatchSources, touched: Touched | None) -> DataFrame:
        require_same_sources(sources, self._context.paths)
        return self._all_groups(session, {table: upto for table, (_, upto) in sources.ranges.items()}, touched)

    def _all_groups(self, session: SparkSession, versions: dict[str, int], touched: Touched | None) -> DataFrame:
        frames = self._frames(session, versions)
        if touched is None or self._refresh is None:
            return rows_of_query(session, self._spec, frames)
        return touched_rows_of_query(session, self._spec, frames, self._refresh, touched)

    def _frames(self, session: SparkSession, versions: dict[str, int]) -> dict[str, DataFrame]:
        return {
            alias: read_version(session, self._context.paths.table(source.table), versions[source.table])
            for alias, source in self._spec.sources.items()
        }

    def _frames_at(self, session: SparkSession, sources: BatchSources) -> dict[str, DataFrame]:
        return self._frames(session, {table: upto for table, (_, upto) in sources.ranges.items()})

    @property
    def _refreshed_columns(self) -> tuple[str, ...]:
        return self._refresh.columns if self._refresh else self._spec.refresh_columns

    def _refresh_from(
        self, session: SparkSession, sources: BatchSources
    ) -> tuple[Mapping[str, Sequence[str]] | None, str]:
        """Return alias -> Spark SQL that gives the values that a changed row affects, or None if it affects all rows.

        Also why it affects all rows, if the check of the spec has promised less.
        """
        self._refresh = refresh_of_table(session, self._spec, self._frames_at(session, sources))
        changed = changed_ranges(self._spec, sources, self._context.paths)
        for alias, why in self._refresh.whole.items():
            if (table := self._spec.sources[alias].table) in changed:
                return None, f"{table} has changed: {why}"
        if not self._refresh.columns or self._refresh.reason:
            return None, self._refresh.reason
        return self._refresh.keys, ""

    def _chosen(
        self, session: SparkSession, sources: BatchSources, cost: RefreshCost, newest: int
    ) -> tuple[Touched | None, str]:
        """Return the touched values, or None if all groups are computed; and why all: what it costs decides."""
        self._context.remarks.clear()  # of an earlier attempt
        self._context.details["refresh"] = cost.figures()
        touched, reason = self._touched(session, sources, cost)
        if not touched or cost.is_small:
            return touched, reason
        groups = self._groups_of(session, sources, touched)
        stored = read_version(session, self._path, newest).where(self._predicate(groups, touched))
        cost = cost.of_touched(self._values, groups.inputFiles(), stored.inputFiles(), self._ranges)
        self._context.details["refresh"] = cost.figures()
        words = cost.in_words(", ".join(self._refreshed_columns))
        if cost.is_whole_cheaper:
            return None, words
        self._context.remarks[:] = [f"incremental: {words}"]
        return touched, ""

    def _touched(self, session: SparkSession, sources: BatchSources, cost: RefreshCost) -> tuple[Touched | None, str]:
        """Return the values of `refresh_by` that changes affect, or None for all; and why all, if that is unusual.

        These are also all if to trace the changes costs more than all groups, or so do the values and have no ranges.
        """
        reason = "" if sources.reprocess else why_whole(sources.ranges, self._context.paths)
        if reason or sources.reprocess or any(after is None for after, _ in sources.ranges.values()):
            return None, reason
        expressions, reason = self._refresh_from(session, sources)
        if expressions is None:
            return None, reason
        if cost.is_whole_cheaper:
            return None, cost.in_words(", ".join(self._refreshed_columns))
        changes: list[DataFrame] = []
        for alias, source in self._spec.sources.items():
            after, upto = sources.ranges[source.table]
            if after is None or after == upto:
                continue
            changed = read_changed_rows(session, self._context.paths.table(source.table), after, upto)
            if changed is None:
                return None, f"files of {source.table} that have changed since are gone"
            changed = changed.where(source.where or "true")
            if source.lookup:
                (of_first,) = expressions[next(iter(self._spec.sources))]
                frames = self._frames_at(session, sources)
                changes.append(touched_by_lookup(alias, changed, frames, self._spec, of_first))
            changes += [changed.select(F.expr(text).alias("touched")) for text in expressions.get(alias, ())]
            for lookup in self._refresh.lookups.get(alias, ()) if self._refresh else ():
                changes.append(touched_by_lookup_of_query(session, lookup, changed))
        if not changes:  # no commit of the sources has changed rows that count
            return [], ""
        texts = reduce(DataFrame.union, changes).select(F.col("touched").cast("string").alias("touched"))
        # Ranges also compute rows that no change touches, which small tables keep as they are (ADR 42).
        most = cost.most_values if cost.is_small else min(cost.most_values, MOST_WITHOUT_RANGES)
        values, self._ranges = _distinct(texts, most + 1), 0
        if len(values) > most:
            kinds = {change.schema["touched"].dataType.simpleString() for change in changes}
            kind = self._kind(session, sources) if len(self._refreshed_columns) == 1 else ""
            if have_ranges(kind, kinds) and (ranges := ranges_of(texts, kind, values)):
                self._values, self._ranges = len(values), len(ranges.ends) + ranges.has_null
                return self._with_later_values(session, sources, ranges)
            values = _distinct(texts, cost.most_values + 1) if most < cost.most_values else values
        self._values = len(values)
        if len(values) <= cost.most_values:
            return self._with_later_values(session, sources, values)
        return None, cost.of_touched(len(values), (), ()).in_words(", ".join(self._refreshed_columns))

    def _kind(self, session: SparkSession, sources: BatchSources) -> str:
        """Return the type of the only column of the refresh."""
        (column,) = self._refreshed_columns
        return self._groups_of(session, sources, None).schema[column].dataType.simpleString()

    def _with_later_values(
        self, session: SparkSession, sources: BatchSources, touched: list[str | None] | Ranges
    ) -> tuple[Touched | None, str]:
        """Return the touched values and, by the lookback of the spec, the later ones that depend on them."""
        if isinstance(touched, list) and not (self._spec.lookback and touched):
            return touched, ""
        column, kind = self._refreshed_columns[0], self._kind(session, sources)
        spans = spans_of(touched, kind, self._spec.reach)
        reason = f"every value of {column} ({kind}) may depend on one that has changed"
        return (spans, "") if spans else (None, reason)

    def _order(self, session: SparkSession, sources: BatchSources, rows: DataFrame) -> list[str]:
        """Return the columns by which a file's rows are ordered: the partitions, then those of the refresh."""
        if self._refresh is None and not self._spec.refresh_from:
            self._refresh = refresh_of_query(session, self._spec, self._frames_at(session, sources))
        wanted = [column.lower() for column in (*self._spec.partitioned_by, *self._refreshed_columns)]
        ordered = {field.name.lower() for field in rows.schema.fields if has_order(field.dataType)}
        return [column for column in dict.fromkeys(wanted) if column in ordered]

    def _predicate(self, groups: DataFrame, touched: Touched | None) -> str:
        """Return the SQL condition of the rows that are replaced."""
        if touched is None:
            return EVERY_ROW
        types = {field.name.lower(): field.dataType.simpleString() for field in groups.schema.fields}
        columns = [f"`{column}`" for column in self._refreshed_columns]
        conditions = (touched_text(value, types, values) for value, values in parts_of(touched, columns))
        return " AND ".join(f"({condition})" for condition in conditions)

    def _shape(self, groups: DataFrame) -> TableShape:
        require_stored_types(self._spec.table, groups.schema)
        columns = {field.name: field.dataType.simpleString() for field in groups.schema.fields}
        return TableShape(
            columns={**columns, **STAMP_COLUMNS},
            partitioned_by=self._spec.partitioned_by,
            properties=shape_properties(self._spec),
            comment=self._spec.description,
        )


def _distinct(texts: DataFrame, most: int) -> list[str | None]:
    """Return so many different values of `touched`, or all if there are fewer."""
    return [row["touched"] for row in texts.distinct().limit(most).collect()]
