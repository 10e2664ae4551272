"""What the maintenance jobs share: the marked commits, the work under the lease, the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from millrace.contracts.job.args import Job
from millrace.contracts.job.contention import LeaseWait
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.lake_path import LakePath
from millrace.control.leases.leases import Leases
from millrace.control.ledger.commit_history import TableWrite
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import new_token
from millrace.control.log.delta_log import MAINTENANCE_KEY, latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.maintenance.health import TableHealth
from millrace.control.maintenance.health_days import keep_health
from millrace.errors import LeaseLostError, NotReadyError, Outcome
from millrace_spark.delta_io.conflict_policy import WriteKind
from millrace_spark.delta_io.contest import Contest, retry_until_committed
from millrace_spark.runtime.context import JobContext

T = TypeVar("T")


def require_table(context: JobContext) -> LakePath:
    """Return the folder of the job's table.

    Raises:
        NotReadyError: there is no table yet.
    """
    path = context.paths.table(context.spec.table)
    if not is_table(path):
        raise NotReadyError(f"{context.spec.table}: there is no table at {path} yet; run the task that writes it first")
    return path


def maintenance_conf(context: JobContext, **facts: str) -> dict[str, str]:
    """Return the conf that marks a commit which is no batch with its run, a token and `facts`; it has no txn."""
    mark = {MAINTENANCE_KEY: {"run_id": context.args.run_id, "token": new_token(), **facts}}
    return {"spark.databricks.delta.commitInfo.userMetadata": json.dumps(mark)}


@dataclass
class LeasedTable:
    """Maintenance of one table under its lease.

    Attributes:
        table: the table's name.
        path: its folder.
        leases: gives the lease.
        contest: the races that it lost against writers.
        waited: how long it waited for the lease, and for whom.
        yielded_to: the batches for which it stopped, each with run and process.
    """

    table: str
    path: LakePath
    leases: Leases
    contest: Contest
    waited: LeaseWait = field(default_factory=LeaseWait)
    yielded_to: list[str] = field(default_factory=list)

    @contextmanager
    def leased(self) -> Iterator[None]:
        """Hold the lease of the table.

        Raises:
            LeaseLostError: the lease was not free in time.
        """
        try:
            with self.leases.table(self.table) as waited:
                self.waited = self.waited.and_then(waited)
                yield
        except LeaseLostError as error:
            self.waited = self.waited.and_then(error.waited)
            raise

    def commit(self, write: Callable[[], T], path: LakePath | None = None) -> T:
        """Run `write`, which commits to the table, or to its tombstones at `path`.

        It runs again if a writer without a lease committed first.

        Raises:
            ConflictError: that happened too often.
        """
        return cast(T, retry_until_committed(self.contest, WriteKind.MAINTENANCE, path or self.path, write))


@contextmanager
def table_work(context: JobContext, operation: str) -> Iterator[LeasedTable]:
    """Work on the job's table, and record it in `ops.commits` as `operation` if it committed, failed or met others."""
    table, path = context.spec.table, context.paths.table(context.spec.table)
    work = LeasedTable(table, path, context.leases, Contest(table, context.spec.conflicts))
    before, is_done = latest_version(path), False
    try:
        yield work
        is_done = True
    finally:
        version = latest_version(path)
        written = TableWrite(
            table=table,
            run_id=context.args.run_id,
            at=context.now(),
            operation=operation,
            version=version if version > before else None,
            attempts=len(work.contest.lost) + 1,
            took_s=time.monotonic() - work.contest.started,
            waited=work.waited,
            lost=tuple(work.contest.lost),
        )
        if written.version is not None or not is_done or written.lost or written.waited.holders:
            context.ops.commits.record(written)


def maintenance_report(
    context: JobContext,
    job: Job,
    outcome: Outcome,
    message: str,
    details: dict[str, Any],
    notes: tuple[str, ...] = (),
    work: LeasedTable | None = None,
    measured: TableHealth | None = None,
) -> JobReport:
    """Return the report of a maintenance job; `work` is None if it did nothing under the lease.

    `measured` is the health of the table after it; None measures it.

    Views follow the certificate, which OPTIMIZE has passed on to another version, and pages what was measured now.
    """
    path = context.paths.table(context.spec.table)
    if not context.args.dry_run:
        keep_health(context.spec, context.catalog, context.ops, context.now(), measured)
    context.ops.gates.publish(context.spec.table)
    version = latest_version(path)
    return JobReport(
        **reported_run(job, context.args),
        outcome=outcome,
        message=f"{context.spec.table}: {message}",
        version=version,
        certified_version=context.ops.gates.certified(context.spec.table),
        table_rows=table_rows(path, version),
        attempts=len(work.contest.lost) + 1 if work else 0,
        lost_races=tuple(work.contest.lost) if work else (),
        waited_s=round(work.waited.seconds, 3) if work else 0.0,
        waited_for=work.waited.holders if work else "",
        details=details,
        notes=notes,
    )
