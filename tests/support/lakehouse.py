"""A small lakehouse for tests of the data plane: specs, landing files, and jobs in the test's own session."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from millrace.contracts.job.args import WRITER_OF_LAYER, Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import QuarantineRequest, RebuildRequest, RepairRequest, RowFilter
from millrace.contracts.lake_path import LakePath, lake_path
from millrace.contracts.row_status import PENDING, RowStatus
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.log.stored_tables import is_table, open_table
from millrace.control.quarantine.rows import quarantined_rows
from millrace.control.quarantine.stored_rows import QuarantinedRow, StoredRows
from millrace.errors import ExitCode, Outcome
from millrace.paths import LakehousePaths
from millrace_spark.jobs import (
    bronze_ingest,
    gold_aggregate,
    quality_gate,
    quarantine_fix,
    quarantine_replay,
    silver_merge,
    subject_erasure,
    table_log,
    table_optimize,
    table_rebuild,
    table_repair,
    table_vacuum,
    table_verify,
)
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import RunJob, run_and_report
from tests.support.documents.specs import Document, write_specs
from tests.support.ledger.delta_tables import day

AT_LEAST_0 = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
"""A rule of bronze or silver."""

RUN: dict[Job, RunJob] = {
    Job.BRONZE_INGEST: bronze_ingest.run,
    Job.SILVER_MERGE: silver_merge.run,
    Job.GOLD_AGGREGATE: gold_aggregate.run,
    Job.QUALITY_GATE: quality_gate.run,
    Job.TABLE_LOG: table_log.run,
    Job.TABLE_OPTIMIZE: table_optimize.run,
    Job.TABLE_VACUUM: table_vacuum.run,
    Job.QUARANTINE_FIX: quarantine_fix.run,
    Job.QUARANTINE_REPLAY: quarantine_replay.run,
    Job.TABLE_REBUILD: table_rebuild.run,
    Job.TABLE_REPAIR: table_repair.run,
    Job.TABLE_VERIFY: table_verify.run,
    Job.SUBJECT_ERASURE: subject_erasure.run,
}


@dataclass(frozen=True, kw_only=True)
class ContextAt(JobContext):
    """The context of a job whose current time is `at`."""

    at: datetime

    def now(self) -> datetime:
        """Return `at`."""
        return self.at


@dataclass
class Lakehouse:
    """A lakehouse below `folder`, with its landing files and, unless they are in a bucket, its tables.

    Needs a running Spark session.
    """

    folder: Path
    reports: list[JobReport] = field(default_factory=list)
    landing: str = ""
    root: str = ""

    @property
    def paths(self) -> LakehousePaths:
        return LakehousePaths(lake_path(self.root or self.folder / "lake"))

    def environment(self) -> dict[str, str]:
        """Return the variables with its settings."""
        return {
            "LAKEHOUSE_ROOT": str(self.paths.root),
            "LAKEHOUSE_LANDING": self.landing or str(self.folder / "landing"),
            "LAKEHOUSE_TABLES": str(self.folder / "tables"),
        }

    def specs(self, *documents: Mapping[str, Any]) -> None:
        """Write specs; a spec of an existing table replaces the old one."""
        write_specs(self.folder / "tables", *documents)

    def change_spec(self, table: str, change: Callable[[Document], Document]) -> None:
        """Change the spec of a table."""
        layer, _, name = table.partition(".")
        [file] = (self.folder / "tables" / layer).rglob(f"{name}.yaml")
        file.write_text(yaml.safe_dump(change(yaml.safe_load(file.read_text())), sort_keys=False))

    def deliver(
        self, number: int, name: str, content: str | bytes | Sequence[Mapping[str, Any] | str], feed: str = "orders"
    ) -> Path:
        """Put a file of a feed into its landing folder of day `number`: raw content, or rows as JSON lines.

        A row that is a text becomes a line without any change.
        """
        path = self.folder / "landing" / feed / f"date={day(number).start:%Y-%m-%d}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, str | bytes):
            content = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def args(self, table: str, number: int = 1, **more: Any) -> JobArgs:
        """Return the arguments of a job on `table` for day `number`."""
        return JobArgs(
            table=table,
            interval_start=day(number).start,
            interval_end=day(number).end,
            run_id=f"test of day {number}",
            root=self.paths.root,
            landing=self.landing or self.folder / "landing",
            tables=self.folder / "tables",
            report=self.folder / "reports" / f"{table}.{len(self.reports)}.json",
            **more,
        )

    def run(
        self, table: str, number: int = 1, job: Job | None = None, at: datetime | None = None, **more: Any
    ) -> JobReport:
        """Run the table's writer (or `job`) for day `number`, with its clock at `at` (None for now)."""
        job = job or WRITER_OF_LAYER[table.split(".")[0]]
        args = self.args(table, number, **more)
        report = run_and_report(job, RUN[job], args, ContextAt(args, at=at) if at else None)
        self.reports.append(report)
        saved = JobReport.load(args.report)
        assert saved == report, "the report on disk is the one that was returned"
        assert report.rows.are_conserved, report.rows
        if report.outcome is Outcome.FAILED:
            return report  # Its store may refuse everything.
        waiting = TableStates(self.paths).read(table, WaitingRows)
        if waiting and waiting.table_id == report.table_id and not waiting.closing:
            first_seen = [row.first_seen for row in self.waiting(table)]
            counted = (len(first_seen), min(first_seen, default=None))
            assert (waiting.rows, waiting.oldest) == counted, "the state counts the rows in quarantine"
        return report

    def ask(self, job: Job, table: str, request: QuarantineRequest, **more: Any) -> JobReport:
        """Run a job of the quarantine."""
        file = request.save(self.folder / "reports" / f"request.{len(self.reports)}.json")
        return self.run(table, job=job, request=file, **more)

    def replay(self, table: str, *, dry_run: bool = False, **request: Any) -> JobReport:
        """Replay quarantined rows of a table, after a fix if the request has one."""
        asked = QuarantineRequest(said_by="ann", **request)
        return self.ask(Job.QUARANTINE_REPLAY, table, asked, dry_run=dry_run)

    def rebuild(self, table: str, *, dry_run: bool = False, **request: Any) -> JobReport:
        """Rebuild a table, or continue or cancel a rebuild."""
        file = RebuildRequest(said_by="ann", **request).save(
            self.folder / "reports" / f"rebuild.{len(self.reports)}.json"
        )
        return self.run(table, job=Job.TABLE_REBUILD, request=file, dry_run=dry_run)

    def repair(self, table: str, where: str, plan: str = "", source: str = "") -> JobReport:
        """Delete rows, or replace them by those of a source, as shown by a plan; without one show that."""
        asked = RepairRequest(where=where, source=source, plan=plan, said_by="ann", why="a wrong delivery")
        file = asked.save(self.folder / "reports" / f"repair.{len(self.reports)}.json")
        return self.run(table, job=Job.TABLE_REPAIR, request=file, dry_run=not plan)

    def waiting(self, table: str, *statuses: RowStatus) -> list[QuarantinedRow]:
        """Return the quarantined rows of a table with these statuses; by default those that wait."""
        return quarantined_rows(StoredRows(table, self.paths), RowFilter(statuses=statuses or PENDING))

    def run_all(self, number: int, *tables: str, **more: Any) -> list[JobReport]:
        """Run tables one after another for day `number`."""
        return [self.run(table, number, **more) for table in tables]

    def run_well(self, number: int, *tables: str, **more: Any) -> JobReport:
        """Run tables one after another for day `number`, which must end well; return the report of the last one."""
        reports = self.run_all(number, *tables, **more)
        assert {report.exit_code for report in reports} == {ExitCode.OK}, [report.message for report in reports]
        return reports[-1]

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of the newest rows of a table, sorted, read by delta-rs."""
        rows = open_table(self.paths.table(table)).to_pyarrow_table(columns=list(columns)).to_pylist()
        return sorted((tuple(row[name] for name in columns) for row in rows), key=repr)

    def quarantine(self, table: str) -> list[dict[str, Any]]:
        """Return the quarantined rows of a table; none if there is no quarantine."""
        path = self.paths.quarantine(table)
        return open_table(path).to_pyarrow_table().to_pylist() if is_table(path) else []


def tombstones_path(lakehouse: Lakehouse, table: str) -> LakePath:
    """Return the folder of the tombstones of the present silver table."""
    return lakehouse.paths.tombstones(table, table_id(lakehouse.paths.table(table)))


def copy_lakehouse(lakehouse: Lakehouse, folder: Path) -> Lakehouse:
    """Copy a lakehouse with its specs and landing files."""
    shutil.copytree(lakehouse.folder, folder)
    return Lakehouse(folder)


def order(
    number: int | str | None, amount: Any, hour: int = 0, seq: int = 1, of_day: int = 1, **more: Any
) -> dict[str, Any]:
    """Return an event of an order."""
    at = f"2013-01-{of_day:02d}T{hour:02d}:00:00Z"
    values = {"order_id": None if number is None else f"o{number}", "amount": amount, "day": f"2013-01-{of_day:02d}"}
    return {**values, "event_at": at, "event_seq": seq, **more}
