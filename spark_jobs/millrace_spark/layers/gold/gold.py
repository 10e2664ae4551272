"""Gold: compute the changed groups again, from pinned versions of its sources.

Not all of Spark's types can be stored, or read by every reader.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    CalendarIntervalType,
    DataType,
    DayTimeIntervalType,
    MapType,
    NullType,
    StringType,
    StructType,
    TimestampNTZType,
    VariantType,
    YearMonthIntervalType,
)

from millrace.contracts.job.report import RowCounts
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.changes.table_diff import changes_since
from millrace.control.changes.table_properties import table_properties
from millrace.control.gates.conservation import rows_of_deletion, rows_of_rebuild
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, StreamPosition, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance.file_layout import rows_per_file
from millrace.control.planning.source_ranges import certified_sources, changed_ranges, pin_sources
from millrace.control.repair.restoring import close_restore
from millrace.errors import SpecError
from millrace.sql.query.reader_types import TIMESTAMP_NTZ, VARIANT, WAY_OUT
from millrace_spark.delta_io.reads import read_version
from millrace_spark.delta_io.row_writes import read_observation, replace_where, replaced_rows, replaced_where
from millrace_spark.delta_io.tables import TableShape
from millrace_spark.layers.gold.choice import PinnedTable, frames_at
from millrace_spark.layers.gold.query import rows_of_query
from millrace_spark.layers.own_table import ensure_own_table, require_fitting_table
from millrace_spark.protocol.batches import BatchPlan, Closing
from millrace_spark.runtime.context import JobContext
from millrace_spark.transforms.stamps import STAMP_COLUMNS, with_stamp
from millrace_spark.transforms.values.unstorable import require_storable


class GoldAggregate:
    """The `BatchWork` of a gold table, by the spec of the job or another one of the table."""

    def __init__(self, context: JobContext, spec: GoldSpec | None = None) -> None:
        self._context = context
        self._spec: GoldSpec = spec or context.spec  # type: ignore[assignment]
        self._path = context.paths.table(self._spec.table)
        self._observations: dict[str, Observation] = {}

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
            frames = frames_at(session, self._spec, self._context.paths, certified)
            shape = self._shape(rows_of_query(session, self._spec, frames))
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
        spec, newest = self._spec, latest_version(self._path)
        table = self._at(session, intent.sources)
        choice = table.choose(newest)
        self._context.details["refresh"] = choice.cost.figures()
        self._context.remarks[:] = [choice.remark] if choice.remark else []  # without those of an earlier attempt
        if choice.reason:
            self._context.notes.append(f"{spec.table}: the whole table was computed: {choice.reason}")
        groups = table.rows(choice)
        ensure_own_table(self._context, self._shape(groups))
        observation = Observation()
        stored = require_storable(groups, spec.partitioned_by, self._context.restricted(spec.table))
        rows = with_stamp(stored, intent).observe(observation, F.count(F.lit(1)).alias("groups"))
        # Each task sorts its own rows, so that a later refresh of few values has to rewrite few files (ADR 42).
        if order := self._order(table, rows):
            rows = rows.sortWithinPartitions(*order)
        cost = choice.cost
        cut = rows_per_file(spec, cost.table, table_rows(self._path, newest), len(groups.columns), cost.sources)
        replace_where(rows, self._path, choice.predicate(groups), cut)
        self._observations[intent.token] = observation

    def close(self, winner: Winner) -> Closing:
        """Count the computed groups, and how many rows of the table changed."""
        if winner.intent.sources.restores is not None:
            return Closing(close_restore(winner, self._context.ops))
        if winner.intent.sources.deletes:
            return Closing(rows_of_deletion(self._path, winner))
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
        return self._at(session, sources).rows()

    def _at(self, session: SparkSession, sources: BatchSources) -> PinnedTable:
        return PinnedTable(session, self._spec, self._context.paths, sources)

    def _order(self, table: PinnedTable, rows: DataFrame) -> list[str]:
        """Return the columns by which a file's rows are ordered: the partitions, then those of the refresh."""
        refreshed = self._spec.refresh_columns
        if not refreshed:
            refreshed = () if table.traced.reason else table.traced.columns
        wanted = [column.lower() for column in (*self._spec.partitioned_by, *refreshed)]
        ordered = {field.name.lower() for field in rows.schema.fields if has_order(field.dataType)}
        return [column for column in dict.fromkeys(wanted) if column in ordered]

    def _shape(self, groups: DataFrame) -> TableShape:
        require_stored_types(self._spec.table, groups.schema)
        columns = {field.name: field.dataType.simpleString() for field in groups.schema.fields}
        return TableShape(
            columns={**columns, **STAMP_COLUMNS},
            partitioned_by=self._spec.partitioned_by,
            properties=table_properties(self._spec),
            comment=self._spec.description,
        )


_NOT_STORED = "which Delta does not store"
_NEW_READER = "which needs a newer reader"
_WHY: dict[type[DataType], tuple[str, str]] = {
    DayTimeIntervalType: (_NOT_STORED, "write a number, such as timestampdiff(SECOND, <start>, <end>)"),
    CalendarIntervalType: (_NOT_STORED, "write the numbers that it is made of"),
    YearMonthIntervalType: (_NOT_STORED, "write a number, such as timestampdiff(MONTH, <start>, <end>)"),
    NullType: (_NOT_STORED, "it is always NULL: give it a type, such as cast(NULL AS string)"),
    StringType: (_NOT_STORED, "write collate(<text>, 'UTF8_BINARY')"),
    TimestampNTZType: (_NEW_READER, WAY_OUT[TIMESTAMP_NTZ]),
    VariantType: (_NEW_READER, WAY_OUT[VARIANT]),
}
"""Type that Delta 4.4 does not store for any reader -> why not, and the way out; text only if it has a collation."""


def require_stored_types(table: str, schema: StructType) -> None:
    """Check that Delta can store the columns of a table, so that every reader can read them.

    Args:
        table: the table.
        schema: its columns.

    Raises:
        SpecError: it cannot; the message names a column and the way out.

    >>> require_stored_types("gold.stays", StructType().add("guest", "string").add("nights", ArrayType(StringType())))
    >>> require_stored_types("gold.stay", StructType().add("at", ArrayType(TimestampNTZType())))
    Traceback (most recent call last):
        ...
    millrace.errors.SpecError: gold.stay: column at is of the type array<timestamp_ntz>, which needs a newer reader
    Write cast(<value> AS timestamp).
    """
    for column in schema.fields:
        for part in _parts(column.dataType):
            why = _WHY.get(type(part))
            if why and not (isinstance(part, StringType) and part.isUTF8BinaryCollation()):
                cause = f"{table}: column {column.name} is of the type {column.dataType.simpleString()}, {why[0]}"
                raise SpecError(cause, f"{why[1][0].upper()}{why[1][1:]}.")


def _parts(kind: DataType) -> Iterator[DataType]:
    """Yield the types of the values that a type holds, or the type itself."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from _parts(field.dataType)
        case ArrayType():
            yield from _parts(kind.elementType)
        case MapType():
            yield from _parts(kind.keyType)
            yield from _parts(kind.valueType)
        case _:
            yield kind


def has_order(kind: DataType) -> bool:
    """Whether Spark can sort by a type, and Delta has its least and greatest value for each file."""
    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)
