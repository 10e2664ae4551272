"""The counts of a merge: by action, and as the commit itself reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from millrace.contracts.job.findings import MAX_SAMPLES, Findings, Ties, merge_findings
from millrace.contracts.job.report import RowCounts
from millrace.contracts.restricted import RestrictedColumns
from millrace.control.log.delta_log import Commit
from millrace_spark.layers.dropped import dropped_by_reason, dropped_rows
from millrace_spark.transforms.silver import changes as C
from millrace_spark.transforms.silver.ties import TIED, tied_keys
from millrace_spark.transforms.silver.timeline import EVENTS

KeyBounds = Mapping[str, str | None]
"""`min_<key>` and `max_<key>` as text, for the keys that can be bounded."""


@dataclass(frozen=True)
class MergeCounts:
    """The row counts of a batch before its commit.

    Attributes:
        read: rows read from the source.
        quarantined: rows refused and kept in the quarantine.
        dropped: rows left out by a rule with `action: drop`.
        accepted: rows that fail no rule.
        by_action: row action -> rows: the latest event of each key, or its periods, and absent target rows.
        events: row action -> accepted source rows that are part of rows with this action.
        deletes: how many of the rows with an action come from a delete event.
        findings: which rows a rule dropped, and which keys tied.
    """

    read: int
    quarantined: int
    dropped: int
    accepted: int
    by_action: Counter[str]
    events: Counter[str]
    deletes: int
    findings: Findings = field(default_factory=Findings)

    @classmethod
    def of(
        cls,
        totals: Mapping[str, Any],
        rows: DataFrame,
        actions: DataFrame,
        keys: Sequence[str],
        restricted: RestrictedColumns,
        of_snapshot: bool = False,
    ) -> MergeCounts:
        """Count the rows of a batch by action, in one Spark job.

        Args:
            totals: `read`, `quarantined`, `dropped` and `accepted`, of all rows of the batch.
            rows: the rows with refusals, cached.
            actions: the rows with `_action`, cached.
            keys: the key columns.
            restricted: the columns whose values are not shown.
            of_snapshot: whether the rows are those of full snapshots.
        """
        columns = {
            "rows": F.count(F.lit(1)),
            "events": F.coalesce(F.sum(EVENTS), F.lit(0)),
            "deletes": F.count(F.when(F.col("_is_delete"), 1)),
            "tied": F.count(F.when(F.col(TIED), 1)),
        }
        counts = actions.groupBy("_action").agg(*(column.alias(name) for name, column in columns.items())).collect()
        by_action, events = (Counter({row["_action"]: row[name] for row in counts}) for name in ("rows", "events"))
        refused = dropped_by_reason(dropped_rows(rows, F.col("_source"))) if totals["dropped"] else ()
        ties = Ties()
        if any(row["tied"] for row in counts):
            tied = tied_keys(actions, keys, restricted)
            samples = tied.sort("description").limit(MAX_SAMPLES).collect()
            described = tuple(row["description"] for row in samples)
            ties = Ties(keys=tied.count(), samples=described, of_snapshot=of_snapshot)
        findings = Findings(refused=refused, ties=ties)
        deletes = sum(row["deletes"] for row in counts)
        read, quarantined, dropped, accepted = (totals[name] for name in ("read", "quarantined", "dropped", "accepted"))
        return cls(read, quarantined, dropped, accepted, by_action, events, deletes, findings)

    def with_findings(self, findings: Findings) -> MergeCounts:
        """Return the same counts with further findings."""
        return replace(self, findings=merge_findings([self.findings, findings]))

    def changing_actions(self) -> set[str]:
        """Return the actions of the rows that change the target."""
        return {action for action in C.CHANGES if self.by_action[action]}

    def changes(self) -> int:
        """Return how many rows change the target."""
        return sum(self.by_action[action] for action in C.CHANGES)

    def to_row_counts(self) -> RowCounts:
        """Return the row counts; an accepted source row that is part of no row with an action is superseded."""
        rows, events = self.by_action, self.events
        return RowCounts(
            read=self.read,
            applied=sum(events[action] for action in (C.INSERT, C.UPDATE, C.DELETE, C.TRUNCATE)),
            unchanged=events[C.UNCHANGED],
            superseded=self.accepted - events.total() + events[C.SUPERSEDED],
            quarantined=self.quarantined,
            dropped=self.dropped,
            inserted=rows[C.INSERT],
            updated=rows[C.UPDATE],
            deleted=rows[C.DELETE] + rows[C.ABSENT],
        )


def committed_changes(commit: Commit) -> tuple[int, int, int]:
    """Return (inserted, updated, deleted) rows from Delta's own metrics of the commit."""
    if commit.operation == "MERGE":
        names = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted")
        inserted, updated, deleted = (int(commit.metrics.get(name, "0")) for name in names)
        return inserted, updated, deleted
    return int(commit.metrics.get("numOutputRows", "0")), 0, 0
