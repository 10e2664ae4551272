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
        by_fate: latest events of each key by fate, and absent target rows.
        deletes: how many of the latest events are deletes.
    """

    read: int
    quarantined: int
    dropped: int
    accepted: int
    by_fate: Counter[str]
    deletes: int

    @classmethod
    def of(cls, facts: Mapping[str, Any], fates: tuple[Counter[str], int]) -> MergeCounts:
        """From the counts over all rows and the fates of the latest ones."""
        return cls(facts["read"], facts["quarantined"], facts["dropped"], facts["accepted"], *fates)

    def only_inserts(self) -> bool:
        """No target row changes or goes; new rows at most."""
        return not any(self.by_fate[fate] for fate in C.CHANGES if fate != C.INSERT)

    def to_fates(self) -> RowFates:
        """One fate a row; accepted rows that are not the latest of their key are superseded."""
        fate = self.by_fate
        latest = fate.total() - fate[C.ABSENT]
        applied = fate[C.INSERT] + fate[C.UPDATE] + fate[C.DELETE]
        return RowFates(
            read=self.read,
            applied=applied,
            unchanged=fate[C.UNCHANGED],
            superseded=self.accepted - latest + fate[C.SUPERSEDED],
            quarantined=self.quarantined,
            dropped=self.dropped,
            inserted=fate[C.INSERT],
            updated=fate[C.UPDATE],
            deleted=fate[C.DELETE] + fate[C.ABSENT],
        )


def fates_of(classified: DataFrame) -> tuple[Counter[str], int]:
    """(rows by `_fate`, deletes among them), in one Spark job."""
    deletes = F.count(F.when(F.col("_is_delete"), 1))
    rows = classified.groupBy("_fate").agg(F.count(F.lit(1)).alias("rows"), deletes.alias("deletes")).collect()
    return Counter({row["_fate"]: row["rows"] for row in rows}), sum(row["deletes"] for row in rows)


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
