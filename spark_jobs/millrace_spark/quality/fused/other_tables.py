"""References: columns whose values must exist in another table, and the number of rows that refer to nothing.

As with a foreign key in SQL, a row with NULL in any of the columns is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace_spark.quality.fused.changed_values import (
    CHANGE,
    ChangedValues,
    changed_values,
    changed_values_frame,
    is_among,
    value_changes,
)
from millrace_spark.quality.fused.groups import Group

_IS_OWN, _EXISTS, _ROWS = "_is_own", "_exists", "_rows"
_NO_VALUES = ChangedValues((), {})
_COUNTS = ("_own_change", "_own_now", "_their_change", "_their_now")


@dataclass(frozen=True)
class Reference:
    """Columns of a table whose combinations of values must exist in another table.

    Attributes:
        own: the columns of the table that is checked.
        other: the other table.
        theirs: its columns, in the order of `own`.
        rows: the rows of the certified version of the other table.
    """

    own: Group
    other: str
    theirs: Group
    rows: DataFrame = field(compare=False)

    @property
    def missing(self) -> str:
        """The name of the figure: the rows whose values the other table lacks."""
        return f"rows of {', '.join(self.own)} that are not in {', '.join(self.theirs)} of {self.other}"

    @property
    def keys(self) -> Group:
        """The names of the columns in frames with rows of both tables."""
        return tuple(f"_key_{place}" for place in range(len(self.own)))

    @property
    def refers(self) -> Column:
        """True for a row without NULL in any of the keys."""
        return reduce(and_, [F.col(key).isNotNull() for key in self.keys])

    def of_own(self, df: DataFrame) -> DataFrame:
        """Return the keys of rows, or of a change feed, of the table that is checked."""
        return _keys(df, self.own)

    def of_theirs(self, df: DataFrame) -> DataFrame:
        """Return the keys of rows, or of a change feed, of the other table."""
        return _keys(df, self.theirs)


@dataclass(frozen=True)
class ChangedReference:
    """What changed in the columns of a reference, on both sides.

    Attributes:
        feed: the change feed of the table that is checked; None if no row changed.
        their_feed: the change feed of the other table; None if no row changed.
        lost_only: whether only combinations that lost rows matter in the other table, because no row lacked its own.
        own: the combinations of the checked table whose number of rows changed.
        theirs: the combinations of the other table whose number of rows changed, or fell.
    """

    feed: DataFrame | None
    their_feed: DataFrame | None
    lost_only: bool
    own: ChangedValues = _NO_VALUES
    theirs: ChangedValues = _NO_VALUES

    @property
    def is_any(self) -> bool:
        """Whether a combination changed on either side."""
        return bool(self.own.hashes or self.theirs.hashes)

    def values_frames(self, reference: Reference, number: int) -> list[DataFrame]:
        """Return the frames that find the changed combinations: of `own` by `number`, of `theirs` by the next one."""
        frames, keys = [], reference.keys
        if self.feed:
            frames.append(changed_values_frame(reference.of_own(self.feed), keys, number))
        if self.their_feed:
            of_theirs = reference.of_theirs(self.their_feed)
            frames.append(changed_values_frame(of_theirs, keys, number + 1, lost_only=self.lost_only))
        return frames

    def with_values(self, values: Mapping[str, Any], reference: Reference, number: int) -> ChangedReference | None:
        """Return it with the changed combinations by the values of these frames; None if there are too many."""
        own, theirs = (changed_values(values, reference.keys, number + side) for side in (0, 1))
        return None if own is None or theirs is None else replace(self, own=own, theirs=theirs)


def with_existence(df: DataFrame, reference: Reference) -> DataFrame:
    """Return each combination of values of both tables: its keys, `_rows` in `df`, and whether it `_exists` there."""
    # A union, because a join would broadcast one side in its own job. It does not filter: see `grouped`.
    own = reference.of_own(df).withColumn(_IS_OWN, F.lit(1))
    both = own.unionAll(reference.of_theirs(reference.rows).withColumn(_IS_OWN, F.lit(0)))
    exists = F.min(_IS_OWN) == 0
    return both.groupBy(*reference.keys).agg(F.sum(_IS_OWN).alias(_ROWS), exists.alias(_EXISTS))


def is_missing(reference: Reference) -> Column:
    """Return true for a combination of `with_existence` that the other table lacks."""
    return reference.refers & ~F.col(_EXISTS)


def missing_rows(df: DataFrame, reference: Reference, number: int) -> DataFrame:
    """Return one row with `missing_<number>`, the number of rows whose values the other table lacks."""
    rows = F.sum(F.when(is_missing(reference), F.col(_ROWS)))
    return with_existence(df, reference).agg(F.coalesce(rows, F.lit(0)).alias(f"missing_{number}"))


def more_missing_rows(df: DataFrame, reference: Reference, changed: ChangedReference, number: int) -> DataFrame:
    """Return how many more rows lack their values than before the changes, as one row with `missing_more_<number>`.

    Of the checked table it reads only rows whose values changed in the other table, and of that table only rows whose
    values changed on either side. It also has `impossible_more_<number>`, the number of combinations that would have
    had fewer than no rows before.

    Args:
        df: the version that is checked.
        reference: the reference.
        changed: what changed on either side, or both.
        number: the number in the names of the columns.
    """
    keys, sides = reference.keys, [side for side in (changed.own, changed.theirs) if side.hashes]
    theirs = reference.of_theirs(reference.rows)
    looked_up = reduce(or_, [is_among(theirs, keys, side) for side in sides])
    parts = [_counted(theirs.where(looked_up), "_their_now", F.lit(1))]
    if changed.feed and changed.own.hashes:
        parts.append(_counted(value_changes(reference.of_own(changed.feed), keys), "_own_change", F.col(CHANGE)))
    if changed.their_feed and changed.theirs.hashes:
        of_theirs = value_changes(reference.of_theirs(changed.their_feed), keys, lost_only=changed.lost_only)
        own = reference.of_own(df)
        parts.append(_counted(of_theirs, "_their_change", F.col(CHANGE)))
        parts.append(_counted(own.where(is_among(own, keys, changed.theirs)), "_own_now", F.lit(1)))
    both = reduce(DataFrame.unionAll, [part.select(*keys, *_COUNTS) for part in parts])
    counts = both.where(reference.refers).groupBy(*keys).agg(*(F.sum(name).alias(name) for name in _COUNTS))
    own_change, own_now, their_change, their_now = (F.coalesce(F.col(name), F.lit(0)) for name in _COUNTS)
    # The rows of a combination that changed on this side alone were not read: there only their change counts.
    changed_there = F.col("_their_change").isNotNull()
    own_before, their_before = own_now - own_change, their_now - their_change
    missing_now = F.when(their_now > 0, 0).otherwise(F.when(changed_there, own_now).otherwise(own_change))
    missing_before = F.when(changed_there & (their_before <= 0), own_before).otherwise(0)
    impossible = changed_there & ((own_before < 0) | (their_before < 0))
    return counts.agg(
        F.coalesce(F.sum(missing_now - missing_before), F.lit(0)).alias(f"missing_more_{number}"),
        F.count_if(impossible).alias(f"impossible_more_{number}"),
    )


def add_missing(
    before: Mapping[str, Any], values: Mapping[str, Any], reference: Reference, number: int
) -> dict[str, int]:
    """Return the figure of a reference after its changes; empty if these cannot be right.

    Args:
        before: the figures of the earlier version.
        values: the values of the frame `more_missing_rows`; none if nothing changed.
        reference: the reference.
        number: the number in their names.
    """
    if values.get(f"impossible_more_{number}"):
        return {}
    return {reference.missing: before[reference.missing] + values.get(f"missing_more_{number}", 0)}


def _keys(df: DataFrame, columns: Sequence[str]) -> DataFrame:
    kind = ["_change_type"] if "_change_type" in df.columns else []
    return df.select(*(F.col(name).alias(f"_key_{place}") for place, name in enumerate(columns)), *kind)


def _counted(df: DataFrame, name: str, count: Column) -> DataFrame:
    return df.withColumns({other: F.lit(None).cast("long") for other in _COUNTS} | {name: count.cast("long")})
