"""The rows that changed since the last checked version, and the figures that follow from them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from include.control.gates.judged_figures import JudgedFigures
from spark_jobs.quality.fused.adjustments import Adjustment, CommitFigures, Facts, adjust_figures

log = logging.getLogger(__name__)

_ROWS = "_rows"


@dataclass(frozen=True)
class Change:
    """What changed between the last checked version and the one that is checked.

    Attributes:
        judged: the last checked version with its figures.
        rows: the number of rows of the version that is checked, by its log.
        feed: the change feed in between; None if no row changed.
    """

    judged: JudgedFigures
    rows: int
    feed: DataFrame | None

    def __str__(self) -> str:
        return f"the change since version {self.judged.version}"


def adjusted_figures(change: Change, flat: Mapping[str, Column], adjust: Mapping[str, Adjustment]) -> Facts:
    """Return the figures that follow from those of the last checked version, computed in one query.

    There are none if the log has another number of rows than the feed leads to.

    Args:
        change: what changed.
        flat: figure -> aggregate.
        adjust: figure -> how it is adjusted.

    Raises:
        PySparkException: an aggregate cannot be computed, or the feed cannot be read.
    """
    before = change.judged.known(adjust)
    commits = _figures_of_commits(change.feed, {name: flat[name] for name in before}) if change.feed else []
    rows = change.judged.rows + sum(commit.added[_ROWS] - commit.removed[_ROWS] for commit in commits)
    if rows != change.rows:
        log.warning("%s leads to %s rows, but the log has %s: all rows are checked", change, rows, change.rows)
        return {}
    return adjust_figures(adjust, before, commits)


def _figures_of_commits(feed: DataFrame, flat: Mapping[str, Column]) -> list[CommitFigures]:
    """Return the figures of the rows that each commit removed and added, in the order of the commits."""
    is_added = F.col("_change_type").isin("insert", "update_postimage")
    figures = [figure.alias(f"flat_{number}") for number, figure in enumerate(flat.values())]
    parts = feed.groupBy("_commit_version", is_added.alias("_is_added"))
    sides = {
        (row["_commit_version"], row["_is_added"]): {
            _ROWS: row[_ROWS],
            **{name: row[f"flat_{number}"] for number, name in enumerate(flat)},
        }
        for row in parts.agg(F.count(F.lit(1)).alias(_ROWS), *figures).collect()
    }
    nothing = {_ROWS: 0}
    return [
        CommitFigures(removed=sides.get((version, False), nothing), added=sides.get((version, True), nothing))
        for version in sorted({version for version, _ in sides})
    ]
