"""The commit protocol: every data write to a medallion table is a batch, and goes through here (ADR 0002).

Resolve -> plan -> intent -> commit -> settle -> close. Numbering a batch "last committed + 1" together with Delta's
skip rule (a recorded txnVersion >= mine is skipped) is a compare-and-swap on the Delta log itself: a crash anywhere
needs no clean-up, a retry finds its token, and a writer that lost its lease is skipped or sent back to plan.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from millrace.contracts.interval import Interval
from millrace.contracts.job.contention import LeaseWait, LostRace
from millrace.contracts.job.findings import Findings
from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.lake_path import LakePath
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS, ConflictSpec
from millrace.control.gates.conservation import check_conservation
from millrace.control.leases.leases import Leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import resolve, winner_at
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, StreamPosition, Winner, new_token
from millrace.control.log.delta_log import find_lost_race, lost_race_to, read_commit
from millrace.control.quarantine.waiting import BatchWaiting
from millrace.errors import LeaseLostError, MillraceError, first_line
from millrace_spark.delta_io.conflict_policy import (
    Conflict,
    Remedy,
    WriteKind,
    conflict_of,
    is_lost_with_an_executor,
    remedy_of,
)
from millrace_spark.delta_io.contest import Contest
from millrace_spark.delta_io.tables import OpenSession
from millrace_spark.spark_errors import is_death

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BatchPlan:
    """What a batch will read.

    Attributes:
        sources: its pinned sources.
        files: the landing files, for bronze.
        lease: held while the batch is written.
        token: the token of the attempt; by default a random one. Who resumes a batch with a known token finds it.
    """

    sources: BatchSources
    files: tuple[FileFact, ...] = ()
    lease: AbstractContextManager[object] = field(default_factory=nullcontext, compare=False)
    token: str = ""


@dataclass(frozen=True)
class Closing:
    """The result of closing a batch.

    Attributes:
        rows: row counts of the batch.
        rows_of_file: source file -> its row counts; bronze only.
        findings: notes about its rows for a person.
        quarantine_grew: number of rows that it has added to the quarantine; None if it changed the quarantine, or rows
            in it, in other ways.
    """

    rows: RowCounts
    rows_of_file: Mapping[str, FileRows] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    quarantine_grew: int | None = 0


class BatchWork(Protocol):
    """The steps that each kind of job implements. All but `plan` may be called again after a crash."""

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        """Return what the next batch reads, or None when there is nothing new."""

    def write(self, session: Any, intent: Intent, plan: BatchPlan) -> None:
        """Make exactly one commit, from frames of `session` only."""

    def close(self, winner: Winner) -> Closing:
        """Make the batch's secondary writes that are still missing, and count its rows."""


@dataclass(frozen=True)
class BatchRequest:
    """The target and the origin of a batch.

    Attributes:
        path: the folder of the table.
        stream: the stream that the batch belongs to.
        interval: the interval of the run.
        run_id: the run that asked for the batch.
        spec_hash: digest of the spec in force.
        now: returns the present time. That of the plan is the batch's: what came while a run waited for the lease is
            not from the future.
    """

    path: LakePath
    stream: Stream
    interval: Interval
    run_id: str
    spec_hash: str
    now: Callable[[], datetime]


@dataclass
class BatchResult:
    """The result of one run of the protocol.

    Attributes:
        winner: the batch, or the stream's last batch when there was nothing new.
        committed: whether this run committed it.
        finished: whether this run closed a batch whose writer died after the commit.
        previous: the batch before it.
        rows: its row counts.
        findings: notes about its rows for a person; empty for a batch that was closed before.
        attempts: number of times that a batch was planned.
        lost: the races that this run lost.
        waited: how long this run waited for the lease, and for whom.
        took_s: seconds from asking for the lease to closing the batch.
    """

    winner: Winner | None = None
    previous: Winner | None = None
    committed: bool = False
    finished: bool = False
    rows: RowCounts = field(default_factory=RowCounts)
    findings: Findings = field(default_factory=Findings)
    attempts: int = 0
    lost: list[LostRace] = field(default_factory=list)
    waited: LeaseWait = field(default_factory=LeaseWait)
    took_s: float = 0.0


class _PlanAgainError(Exception):
    """Another writer took the batch number, or changed the table after it was planned."""


class _SamePlanAgainError(Exception):
    """The commit failed and left nothing in the log; the same number and token may be tried again."""


class BatchWriter:
    """Run the commit protocol for one request. `result` is filled step by step, and stays readable after an error.

    Args:
        request: the target and origin of the batch.
        work: plans, writes and closes it.
        ledger: records intents and winners.
        open_session: opens a separate session for one commit.
        limits: how often, and for how long, to retry after other writers won.
    """

    def __init__(
        self,
        request: BatchRequest,
        work: BatchWork,
        ledger: Ledger,
        open_session: OpenSession,
        limits: ConflictSpec = DEFAULT_CONFLICTS,
    ) -> None:
        self._request = request
        self._work = work
        self._ledger = ledger
        self._open_session = open_session
        self._limits = limits
        self.result = BatchResult()

    def run(self, leases: Leases) -> BatchResult:
        """Commit the batch under the stream's lease.

        Raises:
            ConflictError: other writers won until the limits were reached.
        """
        started = time.monotonic()
        try:
            with leases.stream(self._request.stream.table, self._request.stream.name) as waited:
                self.result.waited = waited
                return self.run_unleased()
        except LeaseLostError as error:
            self.result.waited = error.waited
            raise
        finally:
            self.result.took_s = time.monotonic() - started

    def finish(self, leases: Leases) -> None:
        """Close the last batch of the stream under its lease, if its writer died after the commit; plan nothing."""
        with leases.stream(self._request.stream.table, self._request.stream.name):
            self.finish_unleased()

    def run_unleased(self) -> BatchResult:
        """Commit the batch without a lease.

        This is safe, because the Delta log decides who wins; without a lease a writer only risks wasted work.

        Raises:
            ConflictError: other writers won until the limits were reached.
        """
        self._contest = Contest(self._request.stream.table, self._limits, self.result.lost)
        return self._contest.retrying(_PlanAgainError)(self._attempt)

    def finish_unleased(self) -> None:
        """Close the last batch of the stream without a lease, as `finish`."""
        self._resolve_and_finish()

    def _attempt(self) -> BatchResult:
        """Plan and commit; plan again if cached rows of this attempt were lost with an executor."""
        try:
            return self._plan_and_commit()
        except Exception as error:
            if not is_lost_with_an_executor(error):
                raise
            log.warning("%s: rows were lost with an executor: %s", self._request.stream.table, first_line(error))
            raise _PlanAgainError from error

    def _resolve_and_finish(self) -> StreamPosition:
        position = resolve(self._request.path, self._request.stream, self._ledger)
        last = self.result.previous = position.last
        rows = self._ledger.closed_rows(last) if last else None
        self.result.finished = last is not None and rows is None
        if last and rows is None:  # Its writer died after the commit.
            self._close(last, is_own=False)
        elif rows is not None:
            self.result.rows = rows
        return position

    def _plan_and_commit(self) -> BatchResult:
        position = self._resolve_and_finish()
        plan = self._work.plan(position)
        if plan is None:
            self.result.winner = position.last
            return self.result
        self.result.attempts += 1
        intent = self._intent(position, plan)
        with plan.lease, self._ledger.attempts.outlived(intent, is_death):
            self._ledger.record_intent(intent, plan.files)
            winner = self._contest.retrying(_SamePlanAgainError)(self._commit, intent, plan, position)
        self._ledger.record_committed([winner])
        self.result.winner, self.result.committed = winner, True
        self._close(winner)
        return self.result

    def _close(self, winner: Winner, *, is_own: bool = True) -> None:
        closing = self._work.close(winner)
        check_conservation(self._request.path, winner, closing.rows)
        # Its writer may have changed the quarantine before it died.
        waiting = BatchWaiting(winner, self._ledger.paths, closing.quarantine_grew if is_own else None)
        self._ledger.record_closed(winner, closing.rows, closing.rows_of_file, waiting=waiting)
        self.result.rows, self.result.findings = closing.rows, closing.findings

    def _intent(self, position: StreamPosition, plan: BatchPlan) -> Intent:
        return Intent(
            table=self._request.stream.table,
            table_id=position.table_id,
            stream=self._request.stream.name,
            batch_seq=position.next_seq,
            token=plan.token or new_token(),
            interval_start=self._request.interval.start,
            interval_end=self._request.interval.end,
            run_id=self._request.run_id,
            spec_hash=self._request.spec_hash,
            sources=plan.sources,
            planned_at=self._request.now(),
        )

    def _commit(self, intent: Intent, plan: BatchPlan, position: StreamPosition) -> Winner:
        """Commit once, then read the winner from the log: the token there is the truth, whatever the write returned."""
        failure: Exception | None = None
        try:
            with self._open_session(commit_conf(intent)) as session:
                self._work.write(session, intent, plan)
        except Exception as error:  # noqa: BLE001  the log decides below: a write that raised may have committed
            failure = error
        winner = winner_at(self._request.path, intent.app_id, intent.batch_seq, after=position.version)
        if winner is None:
            raise self._error_without_commit(intent, failure, position) from failure
        if winner.token != intent.token:
            conflict, commit = Conflict.CONCURRENT_TRANSACTION, read_commit(self._request.path, winner.version)
            self._contest.lose(lost_race_to(conflict.value, commit) if commit else LostRace(conflict=conflict.value))
            raise _PlanAgainError
        return winner

    def _error_without_commit(self, intent: Intent, failure: Exception | None, position: StreamPosition) -> Exception:
        """Return the error to raise after a write that left no commit: the failure itself, or one that retries."""
        if failure is None:
            return MillraceError(
                f"{intent.table}: the write of batch {intent.batch_seq} ended without an error and without a commit",
                "Nothing was lost. Its frames were built from another session than the batch's own: build them there.",
            )
        if (conflict := conflict_of(failure)) is None:
            return failure
        self._contest.lose(find_lost_race(conflict.value, str(failure), self._request.path, position.version))
        return _PlanAgainError() if remedy_of(WriteKind.BATCH, conflict) is Remedy.PLAN_AGAIN else _SamePlanAgainError()


def commit_conf(intent: Intent) -> dict[str, str]:
    """Return the session settings that write the batch number and the token into a commit."""
    return {
        "spark.databricks.delta.write.txnAppId": intent.app_id,
        "spark.databricks.delta.write.txnVersion": str(intent.batch_seq),
        "spark.databricks.delta.commitInfo.userMetadata": intent.user_metadata(),
    }
