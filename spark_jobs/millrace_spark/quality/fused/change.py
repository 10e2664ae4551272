"""The rows that changed since the last checked version, and the figures that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from millrace.control.gates.judged_figures import JudgedFigures
from millrace.control.log.file_bounds import FileBounds
from millrace_spark.quality.fused.adjustments import Adjustment, CommitFigures, Facts, adjust_figures
from millrace_spark.quality.fused.changed_values import ChangedValues, changed_values, changed_values_frame
from millrace_spark.quality.fused.groups import OF_GROUPS, Group, group_figure
from millrace_spark.quality.fused.other_tables import ChangedReference, Reference

log = logging.getLogger(__name__)

_VERSION, _IS_ADDED, _ROWS = "_version", "_is_added", "_rows"


@dataclass(frozen=True)
class VersionChange:
    """What changed between the last checked version and the one that is checked.

    Attributes:
        judged: the last checked version with its figures.
        rows: the number of rows of the version that is checked, by its log.
        feed: the change feed in between; None if no row changed.
        in_files: returns the extremes of a column in the data files of the version that is checked.
        is_proof: whether all rows are read as well, to compare the figures that follow from the change with.
        others: another table -> its change feed between its versions at the last check and now; None if no row
            changed. Tables whose changes are unknown are left out.
    """

    judged: JudgedFigures
    rows: int
    feed: DataFrame | None
    in_files: Callable[[str], FileBounds] = lambda _: FileBounds()
    is_proof: bool = False
    others: Mapping[str, DataFrame | None] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"the change since version {self.judged.version}"


@dataclass(frozen=True)
class Adjusted:
    """What follows from the figures of the last checked version and the rows that changed since.

    Attributes:
        flat: the figures that follow from these alone.
        before: the figures of the last checked version.
        values: the groups whose figures follow from these and the number of rows that some combinations have now.
        references: the references whose figures follow from these and from lookups in both tables.
        feed: the change feed; None if no row changed.
    """

    flat: Facts = field(default_factory=dict)
    before: Facts = field(default_factory=dict)
    values: Mapping[Group, ChangedValues] = field(default_factory=dict)
    references: Mapping[Reference, ChangedReference] = field(default_factory=dict)
    feed: DataFrame | None = None


def adjust_by_change(
    change: VersionChange,
    flat: Mapping[str, Column],
    adjust: Mapping[str, Adjustment],
    groups: Sequence[Group],
    references: Sequence[Reference],
) -> Adjusted:
    """Adjust the figures of the last checked version, in one query of the rows that changed, here and in other tables.

    Nothing follows if the log has another number of rows than the feed leads to.

    Args:
        change: what changed.
        flat: figure -> aggregate.
        adjust: figure -> how it is adjusted; the others are computed from all rows.
        groups: the groups, by whose place their columns are numbered.
        references: the references; each has two numbers after those of the groups.

    Raises:
        PySparkException: an aggregate cannot be computed, or the feed cannot be read.
    """
    of_groups = {group: [group_figure(group, figure) for figure in OF_GROUPS] for group in groups}
    missing = [reference.missing for reference in references]
    before = change.judged.known([*adjust, *chain.from_iterable(of_groups.values()), *missing])
    numbers = {group: number for number, group in enumerate(groups) if before.keys() >= set(of_groups[group])}
    followed = {name: flat[name] for name in before if name in flat}
    places = {
        reference: len(groups) + 2 * place
        for place, reference in enumerate(references)
        if reference.missing in before and reference.other in change.others
    }
    frames = [_by_commit(change.feed, followed)] if change.feed else []
    frames += [changed_values_frame(change.feed, group, number) for group, number in numbers.items() if change.feed]
    changes = {
        reference: ChangedReference(change.feed, change.others[reference.other], not before[reference.missing])
        for reference in places
    }
    for reference, changed in changes.items():
        frames += changed.values_frames(reference, places[reference])
    rows = [row.asDict() for row in together(frames).collect()] if frames else []
    commits = _commit_figures([row for row in rows if row.get(_VERSION) is not None], followed)
    expected = change.judged.rows + sum(commit.added[_ROWS] - commit.removed[_ROWS] for commit in commits)
    if expected != change.rows:
        log.warning("%s leads to %s rows, but the log has %s: all rows are checked", change, expected, change.rows)
        return Adjusted()
    of_values = [row for row in rows if row.get(_VERSION) is None]
    found = {name: value for row in of_values for name, value in row.items() if value is not None}
    values = {group: changed_values(found, group, number) for group, number in numbers.items()}
    few = {group: changed for group, changed in values.items() if changed is not None}
    known = {each: changed.with_values(found, each, places[each]) for each, changed in changes.items()}
    of_references = {reference: changed for reference, changed in known.items() if changed is not None}
    adjusted = adjust_figures(adjust, before, commits)
    unknown = {name: adjust[name] for name in before if name in adjust and name not in adjusted and adjust[name].column}
    in_files = _in_files(unknown, before, commits, change.in_files)
    return Adjusted({**adjusted, **in_files}, before, few, of_references, change.feed)


def _in_files(
    unknown: Mapping[str, Adjustment],
    before: Facts,
    commits: Sequence[CommitFigures],
    in_files: Callable[[str], FileBounds],
) -> Facts:
    """Return those extremes whose rows were removed, but which other rows have, too, by the statistics of their files.

    No row of the version can be beyond the extremes of the version before and of the added rows.
    """
    found = {}
    for name, adjustment in unknown.items():
        values = [
            value for value in (before[name], *(commit.added.get(name) for commit in commits)) if value is not None
        ]
        bounds = in_files(adjustment.column)
        extreme, of_files = (min, bounds.least) if adjustment.is_least else (max, bounds.greatest)
        if values and (value := extreme(values)) in of_files:
            found[name] = value
    return found


def together(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of frames with different columns."""
    # A union, because a join would broadcast each frame in its own job.
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def _by_commit(feed: DataFrame, flat: Mapping[str, Column]) -> DataFrame:
    """Return the figures of the rows that each commit removed and added, in a row each."""
    is_added = F.col("_change_type").isin("insert", "update_postimage")
    figures = [figure.alias(f"flat_{number}") for number, figure in enumerate(flat.values())]
    parts = feed.groupBy(F.col("_commit_version").alias(_VERSION), is_added.alias(_IS_ADDED))
    return parts.agg(F.count(F.lit(1)).alias(_ROWS), *figures)


def _commit_figures(rows: Sequence[Mapping[str, Any]], flat: Iterable[str]) -> list[CommitFigures]:
    """Return the figures of each commit by the rows of `_by_commit`, in the order of the commits."""
    places = {name: f"flat_{number}" for number, name in enumerate(flat)}
    sides = {
        (row[_VERSION], row[_IS_ADDED]): {_ROWS: row[_ROWS], **{name: row[place] for name, place in places.items()}}
        for row in rows
    }
    nothing = {_ROWS: 0}
    return [
        CommitFigures(removed=sides.get((version, False), nothing), added=sides.get((version, True), nothing))
        for version in sorted({version for version, _ in sides})
    ]
