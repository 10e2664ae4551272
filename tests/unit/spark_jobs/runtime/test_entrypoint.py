"""What every job has around it: whatever happens, a report and the exit code that belongs to it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from include.contracts.job.args import Job, JobArgs
from include.contracts.job.report import JobReport
from include.errors import (
    BadInputError,
    ConflictError,
    ExitCode,
    GateFailedError,
    MillraceError,
    NotReadyError,
    Outcome,
)
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main, run_and_report
from tests.support.ledger.delta_tables import day

ENDINGS = [
    (NotReadyError("no landing folder"), Outcome.NOT_READY, ExitCode.NOT_READY),
    (BadInputError("a file is broken"), Outcome.BAD_INPUT, ExitCode.BAD_INPUT),
    (ConflictError("lost 8 times"), Outcome.CONFLICT, ExitCode.CONFLICT),
    (GateFailedError("refused"), Outcome.GATE_FAILED, ExitCode.GATE_FAILED),
    (MillraceError("torn"), Outcome.FAILED, ExitCode.FAILED),
    (OSError(errno.EIO, "Input/output error"), Outcome.FAILED, ExitCode.FAILED),
    (KeyError(), Outcome.FAILED, ExitCode.FAILED),
    (OSError(errno.ENOSPC, "No space left on device"), Outcome.DISK_FULL, ExitCode.DISK_FULL),
]


@pytest.fixture
def args(tmp_path: Path) -> JobArgs:
    return JobArgs(
        table="silver.flights",
        interval_start=day().start,
        interval_end=day().end,
        run_id="manual__1",
        root=tmp_path / "lakehouse",
        landing=tmp_path / "landing",
        tables=tmp_path / "tables",
        report=tmp_path / "reports" / "silver.flights.json",
    )


def report_of(args: JobArgs, outcome: Outcome = Outcome.COMMITTED) -> JobReport:
    return JobReport(
        job="silver_merge",
        table=args.table,
        outcome=outcome,
        message="batch 1",
        interval=args.interval,
        run_id=args.run_id,
        timings_s={"batch": 1.0},
    )


def test_a_wrong_setting_of_the_environment_is_reported(args: JobArgs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_KEEP_RUNS_DAYS", "0")
    report = run_and_report(Job.SILVER_MERGE, lambda _: report_of(args), args)
    assert (report.outcome, JobReport.load(args.report)) == (Outcome.FAILED, report)
    assert "keep_runs_days" in report.message


def test_a_job_leaves_its_report_with_the_time_it_took(args: JobArgs) -> None:
    returned = run_and_report(Job.SILVER_MERGE, lambda context: report_of(context.args), args)
    assert JobReport.load(args.report) == returned
    assert returned.timings_s.keys() == {"batch", "total"}
    assert returned.outcome is Outcome.COMMITTED


@pytest.mark.parametrize(("error", "outcome", "exit_code"), ENDINGS)
def test_an_error_becomes_a_report_that_names_it(
    args: JobArgs, error: Exception, outcome: Outcome, exit_code: ExitCode
) -> None:
    def run(_: JobContext) -> JobReport:
        raise error

    report = run_and_report(Job.SILVER_MERGE, run, args)
    assert JobReport.load(args.report) == report
    assert (report.outcome, report.exit_code) == (outcome, exit_code)
    assert (report.table, report.interval, report.run_id) == ("silver.flights", day(), "manual__1")
    if isinstance(error, MillraceError):
        assert (report.message, report.error_class) == (str(error), type(error).__name__)
    elif outcome is Outcome.DISK_FULL:
        assert report.error_class == "DiskFullError"
        assert f"no space left for {args.root}" in report.message
    else:
        assert report.message == f"silver.flights: {type(error).__name__}: {str(error) or type(error).__name__}"


def test_a_specs_error_is_reported_before_spark_is_touched(args: JobArgs) -> None:
    report = run_and_report(
        Job.SILVER_MERGE, lambda context: report_of(context.args, Outcome(context.spec.table)), args
    )
    assert (report.outcome, report.error_class) == (Outcome.BAD_SPEC, "SpecError")
    assert str(args.tables) in report.message


@pytest.mark.parametrize(("outcome", "code"), [(Outcome.COMMITTED, 0), (Outcome.GATE_FAILED, 14)])
def test_a_process_exits_with_the_code_of_its_report(args: JobArgs, outcome: Outcome, code: int) -> None:
    with pytest.raises(SystemExit) as exited:
        main(Job.SILVER_MERGE, lambda context: report_of(context.args, outcome), args.to_argv())
    assert exited.value.code == code
    assert JobReport.load(args.report) is not None
