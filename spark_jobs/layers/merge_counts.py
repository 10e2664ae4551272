"""The counts of a merge: by fate, and as the commit itself reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from include.contracts.job_report import RowFates
from include.control.delta_log import Commit
from spark_jobs.transforms import changes as C
from spark_jobs.transforms.timeline import EVENTS

KeyBounds = Mapping[str, str | None]
"""`min_<key>` and `max_<key>` as text, for the keys that can be bounded."""


@dataclass(frozen=True)
class MergeCounts:
    """What was counted of a batch.

    Attributes:
        read: rows read from the source.
        quarantined: rows refused and kept in the quarantine.
        dropped: rows left out by a rule with `action: drop`.
        accepted: rows that fail no rule.
        by_fate: rows of the outcome by fate: the latest event of each key, or its periods, and absent target rows.
        events: accepted rows by the fate of the row of the outcome that they are part of.
        deletes: how many of these rows come from a delete.
    """

    read: int
    quarantined: int
    dropped: int
    accepted: int
    by_fate: Counter[str]
    events: Counter[str]
    deletes: int

    @classmethod
    def of(cls, facts: Mapping[str, Any], fates: tuple[Counter[str], Counter[str], int]) -> MergeCounts:
        """From the counts over all rows and the fates of the latest ones."""
        return cls(facts["read"], facts["quarantined"], facts["dropped"], facts["accepted"], *fates)

    def only_inserts(self) -> bool:
        """No target row changes or goes; new rows at most."""
        return not any(self.by_fate[fate] for fate in C.CHANGES if fate != C.INSERT)

    def to_fates(self) -> RowFates:
        """One fate a row; accepted rows that are part of no row of the outcome are superseded."""
        rows, events = self.by_fate, self.events
        return RowFates(
            read=self.read,
            applied=sum(events[fate] for fate in (C.INSERT, C.UPDATE, C.DELETE, C.TRUNCATE)),
            unchanged=events[C.UNCHANGED],
            superseded=self.accepted - events.total() + events[C.SUPERSEDED],
            quarantined=self.quarantined,
            dropped=self.dropped,
            inserted=rows[C.INSERT],
            updated=rows[C.UPDATE],
            deleted=rows[C.DELETE] + rows[C.ABSENT],
        )


def fates_of(classified: DataFrame) -> tuple[Counter[str], Counter[str], int]:
    """(rows by `_fate`, events by `_fate`, rows that come from a delete), in one Spark job."""
    facts = {
        "rows": F.count(F.lit(1)),
        "events": F.coalesce(F.sum(EVENTS), F.lit(0)),
        "deletes": F.count(F.when(F.col("_is_delete"), 1)),
    }
    found = classified.groupBy("_fate").agg(*(fact.alias(name) for name, fact in facts.items())).collect()
    rows, events = ({row["_fate"]: row[name] for row in found} for name in ("rows", "events"))
    return Counter(rows), Counter(events), sum(row["deletes"] for row in found)


def one_row(df: DataFrame) -> dict[str, Any]:
    """The single row of an aggregate."""
    return df.collect()[0].asDict()


def changed_rows(commit: Commit) -> tuple[int, int, int]:
    """(inserted, updated, deleted) rows, as Delta's own metrics of the commit say."""
    if commit.operation == "MERGE":
        names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
        inserted, updated, deleted = (int(commit.metrics.get(name, "0")) for name in names)
        return inserted, updated, deleted
    return int(commit.metrics.get("numOutputRows", "0")), 0, 0
