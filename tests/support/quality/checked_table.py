"""A Delta table that is checked again after each change, by what changed and by all rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Expectation
from millrace.control.gates.judged_figures import JudgedFigures
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import latest_version
from millrace.settings import GateReads
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.gate.changed_rows import JudgedVersion, change_since, next_figures
from millrace_spark.quality.fused.one_pass import GATE_CONF
from millrace_spark.quality.suites import check_rules
from millrace_spark.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from millrace_spark.runtime.session import own_session
from tests.support.ledger.delta_tables import intent_of
from tests.support.quality.compared_version import compared_version

OTHER = "silver.other"

Step = tuple[str, Any]
"""A change of a table: `insert` with rows, `merge` with rows by the first column, `update` with the new value of each
column and a condition, `delete` with a condition, `restore`, or `optimize`."""


class CheckedTable:
    """A Delta table with rules, a second one whose values the rules may require, and the figures of the last check.

    All rows of a small table cost less than what changed: other `reads` than those of `Settings` are the rule here.
    """

    def __init__(
        self, folder: Path, rules: list[Expectation], reads: GateReads = "changes", proof_after: int = 50
    ) -> None:
        self.path, self.other, self.rules = folder / "table", folder / "other", rules
        self.reads, self.proof_after = reads, proof_after
        self.last: JudgedFigures | None = None

    def create(self, first: pa.Table, of_other: pa.Table) -> None:
        for path, rows in ((self.path, first), (self.other, of_other)):
            write_deltalake(path, rows, configuration={"delta.enableChangeDataFeed": "true"})

    def apply(self, step: Step, *, to_other: bool = False) -> None:
        """Let delta-rs make the change, as a commit of a batch."""
        kind, given = step
        table = DeltaTable(self.other if to_other else self.path)
        sources = BatchSources(restores=0) if kind == "restore" else BatchSources()
        intent = intent_of("t", 1, sources=sources).user_metadata()
        commit = CommitProperties(custom_metadata={"userMetadata": intent})
        if kind == "insert":
            write_deltalake(table, given, mode="append", commit_properties=commit)
        elif kind == "merge":
            _merge(table, given, commit)
        elif kind == "update":
            table.update(given[0], predicate=given[1], commit_properties=commit)
        elif kind == "delete":
            table.delete(given, commit_properties=commit)
        elif kind == "restore":
            if table.version() > 0:
                table.restore(table.version() - 1, commit_properties=commit)
        else:
            table.optimize.compact(commit_properties=commit)

    def check(self) -> tuple[tuple[CheckResult, ...], tuple[CheckResult, ...]]:
        """Return the check by what changed since the last check, and that of all rows."""
        version, others = latest_version(self.path), {OTHER: (self.other, latest_version(self.other))}
        judged = JudgedVersion(self.path, version, "rules", table_rows(self.path, version), others)
        with own_session(GATE_CONF) as session:
            df, compared = read_version(session, self.path, version), self._compared(session, judged)
            change = change_since(self.last, judged, session, self.reads, self.proof_after)
            by_change, lasting = check_rules(df, self.rules, compared, change)
            of_all_rows = check_rules(df, self.rules, compared)[0] if change else by_change
        self.last = next_figures(judged, change, lasting)
        return by_change, of_all_rows

    def _compared(self, session: SparkSession, judged: JudgedVersion) -> ComparableVersion:
        return compared_version(
            {},
            version=judged.version,
            facts={IN_TABLE: judged.rows},
            others={OTHER: judged.others[OTHER][1]},
            read=lambda _, version: read_version(session, self.other, version),
            rows_of=lambda _, version: table_rows(self.other, version),
        )


def _merge(table: DeltaTable, rows: pa.Table, commit: CommitProperties) -> None:
    columns = {name: f"s.{name}" for name in rows.column_names}
    (
        table.merge(rows, "t.whole IS NOT DISTINCT FROM s.whole", "s", "t", commit_properties=commit)
        .when_matched_delete("s.yes")
        .when_matched_update(columns)
        .when_not_matched_insert(columns)
        .execute()
    )
