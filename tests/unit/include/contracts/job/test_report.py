"""A report is the same after it was written and read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.contracts.interval import Interval
from include.contracts.job.contention import LostRace
from include.contracts.job.report import CheckResult, JobReport, RowCounts
from include.errors import ExitCode, Outcome

DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
COUNTS = st.integers(0, 10**12)
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)

REPORTS = st.builds(
    JobReport,
    job=st.sampled_from(["bronze_ingest", "silver_merge"]),
    table=st.just("silver.flights"),
    outcome=st.sampled_from(Outcome),
    message=st.text(max_size=80),
    interval=st.just(DAY),
    run_id=st.text(max_size=40),
    batch_seq=st.none() | COUNTS,
    version=st.none() | COUNTS,
    rows=st.builds(RowCounts, read=COUNTS, applied=COUNTS, quarantined=COUNTS),
    lost_races=st.lists(
        st.builds(LostRace, conflict=st.text(max_size=10), run_id=st.text(max_size=10), version=st.none() | COUNTS)
    ).map(tuple),
    waited_for=st.text(max_size=10),
    checks=st.lists(
        st.builds(
            CheckResult,
            rule=st.text(max_size=20),
            action=st.sampled_from(["warn", "fail"]),
            passed=st.booleans(),
            observed=VALUES,
            samples=st.lists(VALUES, max_size=5).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
    files=st.dictionaries(st.text(max_size=10), st.text(max_size=10), max_size=3),
    details=st.dictionaries(st.text(max_size=10), VALUES, max_size=3),
    timings_s=st.dictionaries(st.text(max_size=10), st.floats(0, 1e6), max_size=3),
)


@given(report=REPORTS)
def test_a_report_survives_its_file(report: JobReport, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("report") / "deep" / "report.json"
    report.save(path)
    assert JobReport.load(path) == report


def test_a_job_without_a_report_loads_as_none(tmp_path: Path) -> None:
    assert JobReport.load(tmp_path / "none.json") is None


def test_saving_leaves_only_the_report(tmp_path: Path) -> None:
    report = JobReport(job="j", table="t", outcome=Outcome.NO_OP, message="", interval=DAY, run_id="cli")
    report.save(tmp_path / "silver.flights.json")
    report.save(tmp_path / "silver.flights.json")
    assert [path.name for path in tmp_path.iterdir()] == ["silver.flights.json"]


def test_every_outcome_has_its_exit_code() -> None:
    report = JobReport(job="j", table="t", outcome=Outcome.COMMITTED, message="", interval=DAY, run_id="cli")
    codes = {outcome: report.model_copy(update={"outcome": outcome}).exit_code for outcome in Outcome}
    assert codes == {
        Outcome.COMMITTED: ExitCode.OK,
        Outcome.NO_OP: ExitCode.OK,
        Outcome.DELETES_REFUSED: ExitCode.DELETES_REFUSED,
        Outcome.INCONSISTENT: ExitCode.INCONSISTENT,
        Outcome.NOT_READY: ExitCode.NOT_READY,
        Outcome.CONFLICT: ExitCode.CONFLICT,
        Outcome.GATE_FAILED: ExitCode.GATE_FAILED,
        Outcome.BAD_INPUT: ExitCode.BAD_INPUT,
        Outcome.BAD_SPEC: ExitCode.BAD_SPEC,
        Outcome.SPARK_UNAVAILABLE: ExitCode.SPARK_UNAVAILABLE,
        Outcome.DISK_FULL: ExitCode.DISK_FULL,
        Outcome.INCONSISTENT: ExitCode.INCONSISTENT,
        Outcome.FAILED: ExitCode.FAILED,
    }


@pytest.mark.parametrize(
    ("rows", "conserved"),
    [
        (RowCounts(), True),
        (RowCounts(read=9, applied=4, unchanged=2, superseded=1, quarantined=1, dropped=1), True),
        (RowCounts(read=9, applied=9, inserted=5, updated=3, deleted=2), True),
        (RowCounts(read=9, applied=8), False),
        (RowCounts(read=9, applied=9, quarantined=1), False),
    ],
)
def test_rows_are_conserved_when_each_is_counted_once(rows: RowCounts, conserved: bool) -> None:
    assert rows.are_conserved is conserved
