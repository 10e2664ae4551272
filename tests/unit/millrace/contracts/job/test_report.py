"""A report is the same after it was written and read; PostgreSQL can keep the result of a task."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.interval import Interval
from millrace.contracts.job.contention import LostRace
from millrace.contracts.job.report import CheckResult, JobReport, RowCounts
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import ExitCode, Outcome
from tests.support.texts import texts

DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
TEXTS, COUNTS = st.text(max_size=10), st.integers(0, 10**12)
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
CHECKS = st.builds(
    CheckResult, rule=TEXTS, action=st.just("fail"), passed=st.booleans(), observed=VALUES, samples=st.tuples(VALUES)
)
REPORTS = st.builds(
    JobReport,
    job=st.just("silver_merge"),
    table=st.just("silver.flights"),
    outcome=st.sampled_from(Outcome),
    message=TEXTS,
    interval=st.just(DAY),
    run_id=TEXTS,
    version=st.none() | COUNTS,
    rows=st.builds(RowCounts, read=COUNTS, applied=COUNTS, quarantined=COUNTS),
    lost_races=st.tuples(st.builds(LostRace, conflict=TEXTS, run_id=TEXTS, version=st.none() | COUNTS)),
    checks=st.tuples(CHECKS),
    details=st.dictionaries(TEXTS, VALUES, max_size=3),
    timings_s=st.dictionaries(TEXTS, st.floats(0, 1e6), max_size=3),
)


@settings(max_examples=20)
@given(report=REPORTS)
def test_a_report_survives_its_file(report: JobReport, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("report") / "deep" / "report.json"
    assert JobReport.load(path) is None
    for _ in range(2):
        report.save(path)
    assert JobReport.load(path) == report
    assert list(path.parent.iterdir()) == [path]


def test_every_outcome_has_its_exit_code() -> None:
    report = JobReport(job="j", table="t", outcome=Outcome.COMMITTED, message="", interval=DAY, run_id="cli")
    codes = {outcome: report.model_copy(update={"outcome": outcome}).exit_code for outcome in Outcome}
    own = {outcome: ExitCode[outcome.name] for outcome in Outcome if outcome.name in ExitCode.__members__}
    assert codes == {**own, Outcome.COMMITTED: ExitCode.OK, Outcome.NO_OP: ExitCode.OK}
    assert len(own) == 11


def test_rows_are_conserved_when_each_is_counted_once() -> None:
    assert RowCounts().are_conserved
    assert RowCounts(read=9, applied=4, unchanged=2, superseded=1, quarantined=1, dropped=1).are_conserved
    assert RowCounts(read=9, applied=9, inserted=5, updated=3, deleted=2).are_conserved
    assert not RowCounts(read=9, applied=8).are_conserved
    assert not RowCounts(read=9, applied=9, quarantined=1).are_conserved


@given(texts())
def test_any_message_can_be_kept_as_json_of_postgresql(message: str) -> None:
    kept = TaskResult(outcome=Outcome.COMMITTED, message=message).to_xcom()["message"]
    assert kept == message.replace("\0", "\u2400")
    assert json.loads(json.dumps(kept)) == kept
