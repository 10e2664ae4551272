"""Gold: which rows a batch computes, all of them or those of the values that changes affect, and why.

If the touched values are too many for a list, ranges contain all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import TIMES_READ, WHOLE_NUMBERS
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.control.log.batch import BatchSources
from millrace.control.planning.refresh_cost import RefreshCost, cost_before_tracing
from millrace.control.planning.source_ranges import changed_ranges, require_same_sources, why_whole
from millrace.paths import LakehousePaths
from millrace.sql.query.trace import Trace
from millrace_spark.delta_io.reads import read_changed_rows, read_version
from millrace_spark.delta_io.row_writes import EVERY_ROW
from millrace_spark.layers.gold.query import (
    QueryRefresh,
    parts_of,
    refresh_of_table,
    rows_of_query,
    touched_by_lookup,
    touched_rows_of_query,
    trace_of,
)
from millrace_spark.transforms.touched_rows import Touched, touched_text
from millrace_spark.transforms.touched_spans import MAX_SPANS, Ranges, spans_of


@dataclass(frozen=True)
class Choice:
    """Which rows of a table a batch computes.

    Attributes:
        touched: the values of the refresh whose rows are computed; None for all rows.
        cost: what they cost, and all rows.
        refresh: by which values rows can be computed.
        reason: why all rows are computed, if that is unusual.
        remark: what the touched values cost, if that decided.
    """

    touched: Touched | None
    cost: RefreshCost
    refresh: QueryRefresh = field(default_factory=lambda: QueryRefresh((), {}, {}))
    reason: str = ""
    remark: str = ""

    def predicate(self, rows: DataFrame) -> str:
        """Return the SQL condition of the rows of the table that these rows replace."""
        if self.touched is None:
            return EVERY_ROW
        types = {field.name.lower(): field.dataType.simpleString() for field in rows.schema.fields}
        columns = [f"`{column}`" for column in self.refresh.columns]
        conditions = (touched_text(value, types, values) for value, values in parts_of(self.touched, columns))
        return " AND ".join(f"({condition})" for condition in conditions)


@dataclass(frozen=True)
class PinnedTable:
    """A gold table over the versions of its sources that a batch has pinned, in one session."""

    session: SparkSession
    spec: GoldSpec
    paths: LakehousePaths
    sources: BatchSources

    @cached_property
    def frames(self) -> dict[str, DataFrame]:
        """Alias -> all rows of the source.

        Raises:
            BadInputError: a source was replaced by another table.
        """
        require_same_sources(self.sources, self.paths)
        return frames_at(self.session, self.spec, self.paths, {t: upto for t, (_, upto) in self.sources.ranges.items()})

    @cached_property
    def traced(self) -> Trace:
        """Where the values come from by which the table may be refreshed."""
        return trace_of(self.spec, self.frames)

    def rows(self, choice: Choice | None = None) -> DataFrame:
        """Return the rows that are chosen, or all rows."""
        if choice is None or choice.touched is None:
            return rows_of_query(self.session, self.spec, self.frames)
        return touched_rows_of_query(self.session, self.spec, self.frames, choice.refresh, choice.touched)

    def choose(self, newest: int) -> Choice:
        """Choose the rows to compute: what it costs decides between the touched values and all rows.

        Args:
            newest: the version of the table that the batch changes.
        """
        table = self.paths.table(self.spec.table)
        choice = self._by_values(cost_before_tracing(table, newest, self.sources.ranges, self.paths))
        if not choice.touched or choice.cost.is_small:
            return choice
        rows = self.rows(choice)
        stored = read_version(self.session, table, newest).where(choice.predicate(rows))
        cost = choice.cost.of_files(rows.inputFiles(), stored.inputFiles())
        words = cost.in_words(", ".join(choice.refresh.columns))
        if cost.is_whole_cheaper:
            return Choice(None, cost, choice.refresh, words)
        return replace(choice, cost=cost, remark=f"incremental: {words}")

    def _by_values(self, cost: RefreshCost) -> Choice:
        """Choose the values that changes affect; all rows if these are more, or to trace the changes costs more."""
        reason = "" if self.sources.reprocess else why_whole(self.sources.ranges, self.paths)
        if reason or self.sources.reprocess or any(after is None for after, _ in self.sources.ranges.values()):
            return Choice(None, cost, reason=reason)
        refresh = refresh_of_table(self.session, self.spec, self.frames, self.traced)
        whole, columns = Choice(None, cost, refresh), ", ".join(refresh.columns)
        changed = changed_ranges(self.spec, self.sources, self.paths)
        for alias, why in refresh.whole.items():
            if (table := self.spec.sources[alias].table) in changed:
                return replace(whole, reason=f"{table} has changed: {why}")
        if not refresh.columns or refresh.reason:
            return replace(whole, reason=refresh.reason)
        if cost.is_whole_cheaper:
            return replace(whole, reason=cost.in_words(columns))
        changes: list[DataFrame] = []
        for alias, source in self.spec.sources.items():
            after, upto = self.sources.ranges[source.table]
            if after is None or after == upto:
                continue
            rows = read_changed_rows(self.session, self.paths.table(source.table), after, upto)
            if rows is None:
                return replace(whole, reason=f"files of {source.table} that have changed since are gone")
            changes += self._touched_by(alias, rows.where(source.where or "true"), refresh)
        if not changes:  # no commit of the sources has changed rows that count
            return replace(whole, touched=[])
        texts = reduce(DataFrame.union, changes).select(F.col("touched").cast("string").alias("touched"))
        # Ranges also compute rows that no change touches, which small tables keep as they are (ADR 42).
        most = cost.most_values if cost.is_small else min(cost.most_values, MOST_WITHOUT_RANGES)
        values = _distinct(texts, most + 1)
        if len(values) > most:
            kinds = {change.schema["touched"].dataType.simpleString() for change in changes}
            kind = self._kind(refresh) if len(refresh.columns) == 1 else ""
            if have_ranges(kind, kinds) and (ranges := ranges_of(texts, kind, values)):
                of_ranges = cost.of_values(len(values), len(ranges.ends) + ranges.has_null)
                return self._with_later_values(replace(whole, cost=of_ranges), ranges)
            values = _distinct(texts, cost.most_values + 1) if most < cost.most_values else values
        whole = replace(whole, cost=cost.of_values(len(values)))
        if len(values) <= cost.most_values:
            return self._with_later_values(whole, values)
        return replace(whole, reason=whole.cost.in_words(columns))

    def _touched_by(self, alias: str, changed: DataFrame, refresh: QueryRefresh) -> list[DataFrame]:
        """Return the values (`touched`) that changed rows of a source affect."""
        changes = [changed.select(F.expr(text).alias("touched")) for text in refresh.keys.get(alias, ())]
        lookups = refresh.lookups.get(alias, ())
        return [*changes, *(touched_by_lookup(self.session, alias, lookup, changed) for lookup in lookups)]

    def _with_later_values(self, whole: Choice, touched: list[str | None] | Ranges) -> Choice:
        """Return the touched values and, by the lookback of the spec, the later ones that depend on them."""
        if isinstance(touched, list) and not (self.spec.lookback and touched):
            return replace(whole, touched=touched)
        kind = self._kind(whole.refresh)
        if spans := spans_of(touched, kind, self.spec.reach):
            return replace(whole, touched=spans)
        column = whole.refresh.columns[0]
        return replace(whole, reason=f"every value of {column} ({kind}) may depend on one that has changed")

    def _kind(self, refresh: QueryRefresh) -> str:
        """Return the type of the only column of the refresh."""
        (column,) = refresh.columns
        return self.rows().schema[column].dataType.simpleString()


def frames_at(
    session: SparkSession, spec: GoldSpec, paths: LakehousePaths, versions: Mapping[str, int]
) -> dict[str, DataFrame]:
    """Return alias -> all rows of the source, at the version of its table."""
    return {
        alias: read_version(session, paths.table(source.table), versions[source.table])
        for alias, source in spec.sources.items()
    }


def _distinct(texts: DataFrame, most: int) -> list[str | None]:
    """Return so many different values of `touched`, or all if there are fewer."""
    return [row["touched"] for row in texts.distinct().limit(most).collect()]


MOST_WITHOUT_RANGES = 1_000
"""More values are computed by ranges, if they have any: to collect and to list them costs more than most refreshes."""

_NEAR = 0.01
"""Two ranges are one if the gap between them is a smaller part of the whole."""

_PARTS = MAX_SPANS - 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def have_ranges(kind: str, kinds: Iterable[str]) -> bool:
    """Whether values of these types have ranges of another type: all are whole numbers, or the same type of times."""
    types = {kind, *kinds}
    return types <= {*WHOLE_NUMBERS} or (len(types) == 1 and kind in TIMES_READ)


def ranges_of(values: DataFrame, kind: str, sample: Sequence[str | None]) -> Ranges | None:
    """Return at most `MAX_SPANS` ranges that contain all values, by one aggregation; None if one has no known place.

    From the least to the greatest value of the sample there are parts of the same width, and one more on each side.
    Each has one range at most, from the least to the greatest of its values; near neighbours are one. So no value is
    left out, whatever the sample; if it is a fair one, the ranges are narrow.

    Args:
        values: the values, as the text column `touched`, in any number and order.
        kind: their type: whole numbers, dates or times.
        sample: some of them.
    """
    try:
        places = [_place_of(text, kind) for text in sample if text is not None]
    except ValueError:  # years that Spark has, and Python has not
        return None
    least, greatest = min(places, default=0), max(places, default=0)
    text = F.col("touched")
    value = text.try_cast(kind)
    place = _place(value, kind)
    part = (place.cast("double") - F.lit(float(least))) * F.lit(_PARTS / max(greatest - least, 1))
    parts = values.groupBy(F.floor(F.least(F.greatest(part, F.lit(-1.0)), F.lit(float(_PARTS)))).alias("part")).agg(
        F.min(value).cast("string").alias("first"),
        F.max(value).cast("string").alias("last"),
        F.min(place).alias("least"),
        F.max(place).alias("greatest"),
        F.bool_or(text.isNull()).alias("has_null"),
        F.bool_or(text.isNotNull() & value.isNull()).alias("is_odd"),
    )
    rows = parts.collect()
    if any(row["is_odd"] for row in rows):
        return None
    return Ranges(_joined([row for row in rows if row["first"] is not None]), any(row["has_null"] for row in rows))


def _joined(parts: Sequence[Row]) -> list[tuple[str, str]]:
    """Return the ranges of the parts in order, near neighbours as one."""
    ordered = sorted(parts, key=lambda row: int(row["least"]))
    near = max(_NEAR * (ordered[-1]["greatest"] - ordered[0]["least"]), 1) if ordered else 0
    ranges: list[tuple[str, str]] = []
    for at, row in enumerate(ordered):
        if at and row["least"] - ordered[at - 1]["greatest"] <= near:
            ranges[-1] = (ranges[-1][0], row["last"])
        else:
            ranges.append((row["first"], row["last"]))
    return ranges


def _place_of(text: str, kind: str) -> int:
    """Return what `_place` gives for the value with this text.

    >>> _place_of("-7", "bigint"), _place_of("1970-01-03", "date"), _place_of("1970-01-01 00:00:00.5", "timestamp")
    (-7, 2, 500000)

    Raises:
        ValueError: Python has no such date.
    """
    if kind in WHOLE_NUMBERS:
        return int(text)
    unit = timedelta(days=1) if kind == "date" else timedelta(microseconds=1)
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // unit


def _place(value: Column, kind: str) -> Column:
    """Return where a value is among all of its type: the number, or the days or microseconds since 1970."""
    if kind in WHOLE_NUMBERS:
        return value.cast("bigint")
    return F.unix_date(value) if kind == "date" else F.unix_micros(value.cast("timestamp"))
