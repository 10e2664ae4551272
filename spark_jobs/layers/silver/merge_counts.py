"""The counts of a merge: by fate, and as the commit itself reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from include.contracts.job.findings import MAX_SAMPLES, Findings, Ties, merge_findings
from include.contracts.job.report import RowCounts
from include.control.log.delta_log import Commit
from spark_jobs.layers.refused import dropped_by_reason, dropped_rows
from spark_jobs.transforms.silver import changes as C
from spark_jobs.transforms.silver.ties import TIED, tied_keys
from spark_jobs.transforms.silver.timeline import EVENTS

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
        findings: which rows a rule dropped, and which keys tied.
    """

    read: int
    quarantined: int
    dropped: int
    accepted: int
    by_fate: Counter[str]
    events: Counter[str]
    deletes: int
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(cls, facts: Mapping[str, Any], judged: DataFrame, classified: DataFrame, keys: Sequence[str]) -> MergeCounts:
        """From the counts over all rows of a batch, and its frozen frames."""
        found = _by_fate(classified)
        rows, events = (Counter({row["_action"]: row[name] for row in found}) for name in ("rows", "events"))
        findings = Findings(
            refused=dropped_by_reason(dropped_rows(judged, F.col("_source"))) if facts["dropped"] else (),
            ties=_ties(classified, keys) if any(row["tied"] for row in found) else Ties(),
        )
        deletes = sum(row["deletes"] for row in found)
        read, quarantined, dropped, accepted = (facts[name] for name in ("read", "quarantined", "dropped", "accepted"))
        return cls(read, quarantined, dropped, accepted, rows, events, deletes, findings)

    def telling(self, found: Findings) -> MergeCounts:
        """The same with further findings."""
        return replace(self, findings=merge_findings([self.findings, found]))

    def changing_fates(self) -> set[str]:
        """The fates of rows that change the target."""
        return {fate for fate in C.CHANGES if self.by_fate[fate]}

    def changes(self) -> int:
        """How many rows change the target."""
        return sum(self.by_fate[fate] for fate in C.CHANGES)

    def only_inserts(self) -> bool:
        """No target row changes or goes; new rows at most."""
        return self.changing_fates() <= {C.INSERT}

    def to_row_counts(self) -> RowCounts:
        """One fate a row; accepted rows that are part of no row of the outcome are superseded."""
        rows, events = self.by_fate, self.events
        return RowCounts(
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


def _by_fate(classified: DataFrame) -> list[Row]:
    """Of each `_action`: `rows`, their `events`, how many are `deletes`, and how many are `tied`; in one Spark job."""
    facts = {
        "rows": F.count(F.lit(1)),
        "events": F.coalesce(F.sum(EVENTS), F.lit(0)),
        "deletes": F.count(F.when(F.col("_is_delete"), 1)),
        "tied": F.count(F.when(F.col(TIED), 1)),
    }
    return classified.groupBy("_action").agg(*(fact.alias(name) for name, fact in facts.items())).collect()


def _ties(classified: DataFrame, keys: Sequence[str]) -> Ties:
    tied = tied_keys(classified, keys)
    samples = tied.sort("description").limit(MAX_SAMPLES).collect()
    return Ties(keys=tied.count(), samples=tuple(row["description"] for row in samples))


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
