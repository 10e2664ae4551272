"""The report that every job writes: how it ended, and what happened to the rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

from pydantic import Field

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.contention import LostRace
from millrace.contracts.job.findings import Findings
from millrace.contracts.spec.expectation import Action
from millrace.contracts.strict_model import StrictModel
from millrace.errors import ExitCode, Outcome


class RowCounts(StrictModel):
    """Count what happened to the rows that a batch read, and how many rows of its table changed.

    Every row that was read is in exactly one of five counts:
    `read = applied + unchanged + superseded + quarantined + dropped` holds for every batch.

    Attributes:
        read: rows (or records) read from the source.
        applied: rows that changed the target: inserted, updated or deleted by it.
        unchanged: rows that the target already holds with the same values.
        superseded: rows that a later row, in the batch or in the target, replaces.
        quarantined: rows refused by a rule and kept in the quarantine.
        dropped: rows left out by a named rule with `action: drop`.
        inserted: new rows of the target.
        updated: changed rows of the target.
        deleted: deleted rows of the target, also those that a snapshot lacks; in gold, by how many groups it shrank.
    """

    read: int = 0
    applied: int = 0
    unchanged: int = 0
    superseded: int = 0
    quarantined: int = 0
    dropped: int = 0
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def are_conserved(self) -> bool:
        """Whether every row that was read is in exactly one of the five counts."""
        return self.read == self.applied + self.unchanged + self.superseded + self.quarantined + self.dropped


def total(counts_of_batches: Iterable[RowCounts]) -> RowCounts:
    """Add up the row counts of several batches.

    >>> total([RowCounts(read=2, applied=2), RowCounts(read=1, unchanged=1)])
    RowCounts(read=3, applied=2, unchanged=1, superseded=0, quarantined=0, dropped=0, inserted=0, updated=0, deleted=0)
    """
    batches = list(counts_of_batches)
    if len(batches) == 1:
        return batches[0]
    return RowCounts(**{name: sum(getattr(counts, name) for counts in batches) for name in RowCounts.model_fields})


class FileRows(StrictModel):
    """Count what happened to the records of one landing file.

    Attributes:
        read: records in the file.
        written: rows in bronze from the file.
        rescued: how many of these rows have a value in `_rescued`.
        quarantined: records that were refused.
        dropped: records left out by a rule with `action: drop`.
    """

    read: int = 0
    written: int = 0
    rescued: int = 0
    quarantined: int = 0
    dropped: int = 0


class CheckResult(StrictModel):
    """The result of one expectation for one table version.

    Attributes:
        rule: the expectation and its columns, as `Expectation.rule`.
        action: `warn` or `fail`; also `warn` for a `fail` rule if the version is only outside its narrower band.
        passed: whether the version meets the rule.
        severity: `critical`, `warning` or `info`.
        reason: why the rule exists, from the spec.
        expected: the rule's arguments other than its columns, such as `min_value`.
        observed: the observed value; None if there is none.
        unexpected_rows: the number of rows that fail the rule; None for a rule that does not count rows.
        samples: up to five unexpected values.
        error: why the rule could not be evaluated; such a rule never passes.
        overridden: whether a person let the version pass although the rule failed.
        not_judged: why the rule cannot be evaluated yet, such as too short a past; such a rule refuses nothing, and is
            reported.
        against: what the version was compared with, such as `silver.planes version 4`.
        judged_by: the rows that were read: `all rows`, or `the change since version 6`; empty if the log sufficed.
    """

    rule: str
    action: str
    passed: bool
    severity: str = ""
    reason: str = ""
    expected: dict[str, Any] = Field(default_factory=dict)
    observed: Any = None
    unexpected_rows: int | None = None
    samples: tuple[Any, ...] = ()
    error: str = ""
    overridden: bool = False
    not_judged: str = ""
    against: str = ""
    judged_by: str = ""

    @property
    def bounded_rule(self) -> str:
        """The expectation with its columns and its bounds.

        >>> CheckResult(rule="expect_column_max_to_be_between(n)", action="fail", passed=False,
        ...             expected={"max_value": 9}).bounded_rule
        'expect_column_max_to_be_between(n, max_value=9)'
        """
        name, _, columns = self.rule.removesuffix(")").partition("(")
        bounds = (f"{key}={value}" for key, value in self.expected.items())
        return f"{name}({', '.join(part for part in (columns, *bounds) if part)})"

    @property
    def finding(self) -> str:
        """What the rule has found, with values of rows.

        >>> failed = CheckResult(rule="expect_column_to_exist(n)", action="fail", passed=False)
        >>> failed.finding, failed.model_copy(update={"observed": 3, "unexpected_rows": 1}).finding
        ('failed', 'observed 3, 1 row')
        """
        observed = () if self.observed is None else (f"observed {self.observed}",)
        rows = () if self.unexpected_rows is None else (counted(self.unexpected_rows, "row"),)
        return self.error or ", ".join((*observed, *rows)) or "failed"

    @property
    def refuses(self) -> bool:
        """Whether this result refuses the version.

        >>> failed = CheckResult(rule="expect_column_to_exist(n)", action="fail", passed=False)
        >>> failed.refuses, failed.model_copy(update={"overridden": True}).refuses
        (True, False)
        """
        return not self.passed and self.action == Action.FAIL and not self.overridden


class ReportedRun(TypedDict):
    """The attributes of `JobReport` that follow from the arguments of a job."""

    job: str
    table: str
    interval: Interval
    run_id: str


def reported_run(job: Job, args: JobArgs) -> ReportedRun:
    """Return which job worked on which table, for which interval and in which run: `JobReport(**reported_run(...))`."""
    return {"job": job.value, "table": args.table, "interval": args.interval, "run_id": args.run_id}


class JobReport(StrictModel):
    """The report of a job's end. The operator and the CLI decide only from it.

    Attributes:
        job: the job.
        table: the table that it worked on.
        outcome: how it ended.
        message: what happened, in one line for a person; after a failure further lines say what to do.
        error_class: the class of the error that ended it.
        interval: the interval of the run.
        run_id: the id of the run.
        table_id: Delta's id of the table.
        stream: the stream of the batch.
        batch_seq: the number of the batch that this run committed, or of the last batch if nothing was new.
        token: the token of that batch's winning attempt.
        version: the table version that the batch made.
        certified_version: the table version that readers may use.
        certified_moved: whether this run changed the certified version.
        rows: the row counts of all batches of the run.
        findings: the refused rows by reason, and the keys whose events tie.
        table_rows: the number of rows in the table after the run; None if it was not counted.
        attempts: how many times the batch was planned.
        lost_races: the commits that were lost to other writers.
        waited_s: seconds of waiting for the lease.
        waited_for: run and process of those that held the lease.
        checks: the results of the gate's rules.
        files: path -> status of the source files that this run loaded or left out, bronze only.
        details: figures of this kind of job, such as files removed by OPTIMIZE.
        notes: remarks for people, such as a change of the spec since the last batch.
        waits_for: the tables that stopped the run of this table.
        skipped: whether the table was skipped, as requested, because its landing folder is missing.
        timings_s: phase -> seconds.
    """

    job: str
    table: str
    outcome: Outcome
    message: str
    error_class: str = ""
    interval: Interval
    run_id: str
    table_id: str = ""
    stream: str = ""
    batch_seq: int | None = None
    token: str = ""
    version: int | None = None
    certified_version: int | None = None
    certified_moved: bool = False
    rows: RowCounts = RowCounts()
    findings: Findings = Findings()
    table_rows: int | None = None
    attempts: int = 0
    lost_races: tuple[LostRace, ...] = ()
    waited_s: float = 0.0
    waited_for: str = ""
    checks: tuple[CheckResult, ...] = ()
    files: dict[str, str] = Field(default_factory=dict)
    details: dict[str, Any] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    skipped: bool = False
    timings_s: dict[str, float] = Field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a job with this outcome."""
        return ExitCode.OK if self.outcome in (Outcome.COMMITTED, Outcome.NO_OP) else ExitCode[self.outcome.name]

    @property
    def for_people(self) -> str:
        """The message and the notes, in paragraphs."""
        return "\n\n".join((self.message, *self.notes))

    def save(self, path: Path) -> None:
        """Write the report to `path` whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        try:
            partial.write_text(self.model_dump_json(indent=1), encoding="utf-8")
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        partial.replace(path)

    @classmethod
    def load(cls, path: Path) -> JobReport | None:
        """Read the report at `path`; None if the job wrote none."""
        return cls.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None
