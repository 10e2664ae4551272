"""Reports: the exit code, the failures and the table of a run."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from millrace.cli.runs.reports import ending, failure_lines, note_lines, report_table, window_table, worst
from millrace.contracts.interval import Interval
from millrace.contracts.job.findings import Findings, RefusedRows
from millrace.contracts.job.report import CheckResult, JobReport, RowCounts
from millrace.errors import ExitCode, Outcome
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import load_batch

LAKE = LakehousePaths(Path("/nowhere"))
DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))


def report_of(table: str, outcome: Outcome = Outcome.COMMITTED, **fields: Any) -> JobReport:
    """Return a report with a message."""
    fields = {"message": f"{table}: {outcome.value}", **fields}
    return JobReport(job="j", table=table, outcome=outcome, interval=DAY, run_id="cli", **fields)


def lines_of(table: Table) -> list[list[str]]:
    """Return the words of each row."""
    out = StringIO()
    Console(file=out, width=200).print(table)
    return [line.split() for line in out.getvalue().splitlines()[3:] if line.strip()]


def test_the_worst_ending_is_the_exit_code() -> None:
    assert worst([]) is ExitCode.OK
    assert worst(ExitCode) is ExitCode.INCONSISTENT
    assert worst([ExitCode.NOT_READY, ExitCode.BAD_INPUT, ExitCode.CONFLICT]) is ExitCode.BAD_INPUT


def test_a_committed_version_that_its_gate_refused_is_a_failed_gate_unless_a_person_let_it_pass() -> None:
    refused = CheckResult(rule="r(a)", action="fail", passed=False, reason="why", observed=3, unexpected_rows=1200)
    warned = CheckResult(rule="w(a)", action="warn", passed=False)
    overridden = CheckResult(rule="r(a)", action="fail", passed=False, overridden=True)
    for checks, code in (((warned, overridden), ExitCode.OK), ((warned, refused), ExitCode.GATE_FAILED)):
        assert ending(report_of("silver.a", checks=checks)) is code
    assert list(failure_lines([report_of("silver.a", checks=(overridden,))], LAKE)) == []
    message = "silver.a: batch 2, version 2: 5 rows read; silver.a version 2 refused: r(a)\nFix the data."
    counting = CheckResult(rule="c(a)", action="fail", passed=False, unexpected_rows=1)
    report = report_of("silver.a", checks=(warned, refused, counting), message=message, certified_version=1)
    assert list(failure_lines([report], LAKE)) == [
        "silver.a: refused by r(a): why (observed 3, 1,200 rows)",
        "silver.a: refused by c(a): no reason stated (1 row)",
        "readers stay on version 1",
        "Fix the data.",
    ]


def test_a_version_that_may_be_let_pass_has_the_command_for_it(tmp_path: Path) -> None:
    version = load_batch(tmp_path, bronze_spec()).version
    refused = CheckResult(rule="r(a)", action="fail", passed=False, reason="why", observed=3)
    message = "bronze.orders: batch 1: 5 rows read; bronze.orders version 1 refused: r(a)\nFix the data."
    report = report_of("bronze.orders", checks=(refused,), message=message, version=version)
    assert list(failure_lines([report], LakehousePaths(tmp_path)))[-2:] == [
        "Fix the data.",
        f"If version {version} may be read as it is: `lakehouse gate override bronze.orders --version {version} "
        "--reason ...`, then run this again.",
    ]


def test_failures_name_the_cause_and_neither_the_tables_that_waited_for_it_nor_a_stack_trace() -> None:
    trace = "silver.b: Py4JJavaError: it broke\n: org.X: why\n\tat org.Y(Z.scala:1)\n\tat org.Z"
    reports = [
        report_of("bronze.a", Outcome.BAD_INPUT, message="bronze.a: broken file", error_class="BadInputError"),
        report_of("silver.a", Outcome.NOT_READY, waits_for=("bronze.a",)),
        report_of("bronze.b", Outcome.NOT_READY, message="no folder 1\nIt may come.", error_class="NotReadyError"),
        report_of("bronze.c", Outcome.NOT_READY, message="no folder 2\nIt may come.", error_class="NotReadyError"),
        report_of("silver.b", Outcome.FAILED, message=trace),
    ]
    assert list(failure_lines(reports, LAKE)) == [
        "bronze.a: broken file",
        "bronze.b: no folder 1",
        "bronze.c: no folder 2",
        "It may come.",
        "silver.b: Py4JJavaError: it broke",
        ": org.X: why",
    ]


def test_several_intervals_show_the_last_known_version() -> None:
    made = report_of("silver.a", rows=RowCounts(read=3, applied=3), version=2, certified_version=1)
    [row] = lines_of(window_table([made, report_of("silver.a", Outcome.NOT_READY)], ["silver.a"]))
    assert " ".join(row).startswith("silver.a 1 committed, 1 not ready 2 3 3 ")
    assert row[-3:-1] == ["2", "1"]


def test_a_note_and_a_skipped_table_are_named_once_for_all_tables() -> None:
    missing = report_of("bronze.a", Outcome.NO_OP, message="bronze.a: no landing folder x\nIt may come.", skipped=True)
    reports = [report_of("bronze.a", notes=("the spec changed", "b.json was given up")), missing, missing]
    again = report_of("gold.a", notes=("the spec changed",))
    assert note_lines([*reports, again]) == [
        "skipped: bronze.a: no landing folder x",
        "note: the spec changed",
        "note: b.json was given up",
    ]


def test_findings_of_several_days_are_added_up() -> None:
    findings = Findings(refused=(RefusedRows(reason="r(a): why", action="quarantine", rows=2, samples=("3fa8",)),))
    notes = (*findings.lines("silver.a"), "the spec of silver.a changed")
    days = [report_of("silver.a", findings=findings, notes=notes) for _ in range(18)]
    other = report_of("silver.b", notes=("the spec of silver.b changed",))
    assert note_lines([*days, other]) == [
        "note: silver.a: 36 rows went into quarantine: r(a): why. See: lakehouse quarantine show silver.a 3fa8",
        "note: the spec of silver.a, silver.b changed",
    ]


def test_every_table_has_its_line_whether_it_ran_or_not() -> None:
    ran = report_of("a.x", rows=RowCounts(read=1234, applied=1234), version=3, certified_version=3)
    idle = ran.model_copy(update={"table": "a.y", "outcome": Outcome.NO_OP})
    broken = report_of("a.z", Outcome.BAD_INPUT, rows=RowCounts(read=19, applied=11, quarantined=8), version=2)
    rows = lines_of(report_table([ran, idle, broken], ["a.x", "a.y", "a.z", "not.run"]))
    assert rows[0] == ["a.x", "committed", "1,234", "1,234", *"00000", "3", "3", "0.0"]
    assert rows[1] == ["a.y", "no", "op", *"-------", "3", "3", "0.0"]
    assert rows[2][:9] == ["a.z", "bad", "input", "19", "11", "0", "0", "8", "0"]
    assert rows[3][:3] == ["not.run", "not", "run"]
