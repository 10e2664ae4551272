"""The output for the reports of a run: how each table ended, and what was refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.table import Table
from rich.text import Text

from millrace.cli.views import MISSING, count, new_table
from millrace.contracts.counted import counted
from millrace.contracts.job.findings import merge_findings
from millrace.contracts.job.report import CheckResult, JobReport, total
from millrace.errors import ExitCode, Outcome
from millrace.paths import LakehousePaths

_BY_SEVERITY = (
    ExitCode.OK,
    ExitCode.NOT_READY,
    ExitCode.CONFLICT,
    ExitCode.SPARK_UNAVAILABLE,
    ExitCode.GATE_FAILED,
    ExitCode.DELETES_REFUSED,
    ExitCode.BAD_INPUT,
    ExitCode.WRONG_RUN,
    ExitCode.WRONG_USAGE,
    ExitCode.BAD_SPEC,
    ExitCode.DISK_FULL,
    ExitCode.FAILED,
    ExitCode.INCONSISTENT,
)
"""From the ending that resolves itself to the one that needs a person most."""

_PLACEHOLDER = "\0"

_ROW_COUNTS = ("read", "applied", "unchanged", "superseded", "quarantined", "dropped", "deleted")


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the most severe of several exit codes.

    >>> worst([ExitCode.OK, ExitCode.NOT_READY, ExitCode.GATE_FAILED]).name
    'GATE_FAILED'
    """
    return max(codes, key=_BY_SEVERITY.index, default=ExitCode.OK)


def ending(report: JobReport) -> ExitCode:
    """Return the exit code of a table's run; a committed version that its gate refused counts as a failed gate."""
    refused = report.exit_code is ExitCode.OK and any(refusals(report))
    return ExitCode.GATE_FAILED if refused else report.exit_code


def refusals(report: JobReport) -> list[CheckResult]:
    """Return the results that made the gate refuse the version."""
    return [check for check in report.checks if check.refuses]


def report_line(report: JobReport) -> Text:
    """Return one line on the end of a table's run."""
    rows = (
        f"  {counted(report.rows.read, 'row')} read, {count(report.rows.applied)} applied" if _has_rows(report) else ""
    )
    rows += f", {count(report.rows.deleted)} deleted" if rows and report.rows.deleted else ""
    return Text.assemble(f"{report.table:<32} ", _outcome(report), f"{rows}  {_seconds(report):.1f} s")


def report_table(reports: Iterable[JobReport], tables: Iterable[str]) -> Table:
    """Return how each of `tables` ended; a table that the driver did not reach has no figures."""
    numbers = (*_ROW_COUNTS, "version", "certified", "seconds")
    shown = new_table("table", "outcome", *numbers, numbers=numbers)
    by_table = {report.table: report for report in reports}
    for table in tables:
        report = by_table.get(table)
        if report is None:
            shown.add_row(table, Text("not run", style="dim"), *[MISSING] * len(numbers))
            continue
        row_counts = [count(getattr(report.rows, name) if _has_rows(report) else None) for name in _ROW_COUNTS]
        versions = _versions(report)
        shown.add_row(table, _outcome(report), *row_counts, *versions, f"{_seconds(report):.1f}")
    return shown


def window_table(reports: Sequence[JobReport], tables: Iterable[str]) -> Table:
    """Return how each of `tables` ended over several intervals: the number of each outcome, total rows and seconds."""
    numbers = ("intervals", *_ROW_COUNTS, "version", "certified", "seconds")
    shown = new_table("table", "outcomes", *numbers, numbers=numbers)
    for table in tables:
        table_reports = [report for report in reports if report.table == table]
        outcomes = Counter(_outcome(report).plain for report in table_reports)
        summary = ", ".join(f"{number} {words}" for words, number in outcomes.most_common())
        rows = total(report.rows for report in table_reports if _has_rows(report))
        # A run that waited, or was refused, has no version.
        with_version = [report for report in table_reports if report.version is not None]
        versions = _versions(with_version[-1]) if with_version else (MISSING, MISSING)
        row_counts = [count(getattr(rows, name)) for name in _ROW_COUNTS]
        seconds = sum(map(_seconds, table_reports))
        shown.add_row(table, summary or "not run", str(len(table_reports)), *row_counts, *versions, f"{seconds:.1f}")
    return shown


def note_lines(reports: Iterable[JobReport]) -> list[str]:
    """Return the remarks of all tables; findings of several intervals are merged, and equal notes of several tables."""
    every = list(reports)
    skipped = dict.fromkeys(report.message.split("\n")[0] for report in every if report.skipped)
    findings = [
        line
        for table in dict.fromkeys(report.table for report in every)
        for line in merge_findings(report.findings for report in every if report.table == table).lines(table)
    ]
    others = [
        (report.table, note)
        for report in every
        for note in report.notes
        if note not in report.findings.lines(report.table)
    ]
    return [
        *(f"skipped: {message}" for message in skipped),
        *(f"note: {note}" for note in (*findings, *merge_notes(others))),
    ]


def merge_notes(notes: Iterable[tuple[str, str]]) -> list[str]:
    """Merge notes that differ only in the table into one note that names all tables.

    >>> merge_notes([("a.x", "the spec of a.x changed"), ("a.y", "the spec of a.y changed"), ("a.x", "b was given up")])
    ['the spec of a.x, a.y changed', 'b was given up']
    """
    tables: dict[str, list[str]] = {}
    for table, note in notes:
        note_tables = tables.setdefault(note.replace(table, _PLACEHOLDER), [])
        note_tables += [] if table in note_tables else [table]
    return [note.replace(_PLACEHOLDER, ", ".join(note_tables)) for note, note_tables in tables.items()]


def failure_lines(reports: Iterable[JobReport], paths: LakehousePaths) -> Iterator[str]:
    """Yield the cause for each table that failed, and then, once for all tables that they help, the ways out.

    Tables that only waited for another are left out.
    """
    causes: dict[tuple[str, ...], dict[str, None]] = {}
    for report in reports:
        if ending(report) is not ExitCode.OK and not report.waits_for:
            # A stack trace, if there is one, is in the driver's log.
            message = re.split(r"\n\s*at ", report.message.removeprefix(f"{report.table}: "), maxsplit=1)[0]
            cause, *ways_out = message.split("\n")
            if refusals(report) and report.version is not None and not _is_undone(report, paths):
                override = f"lakehouse gate override {report.table} --version {report.version} --reason ..."
                ways_out.append(f"If version {report.version} may be read as it is: `{override}`, then run this again.")
            lines = _refusal_lines(report) if refusals(report) else (f"{report.table}: {cause}",)
            causes.setdefault(tuple(ways_out), {}).update(dict.fromkeys(lines))
    for ways, of_ways in causes.items():
        yield from (*of_ways, *ways)


def _is_undone(report: JobReport, paths: LakehousePaths) -> bool:
    """Return whether the rows before the refused version were restored, which no override then brings back."""
    # Imported here, because the Delta reader takes time to import.
    from millrace.control.gates.verdicts import restoring_version

    return restoring_version(paths.table(report.table), report.version or 0) is not None


def _refusal_lines(report: JobReport) -> Iterator[str]:
    for check in refusals(report):
        yield f"{report.table}: refused by {check.bounded_rule}: {check.reason or 'no reason stated'} ({check.finding})"
    certified = report.certified_version
    yield "readers have no certified version yet" if certified is None else f"readers stay on version {certified}"


def _versions(report: JobReport) -> tuple[str, str]:
    """Return the newest version with the rows of the last batch, and the certified version, whose rows are the same."""
    version, certified = report.version, report.certified_version
    newest = max(version, certified) if version is not None and certified is not None else version
    return count(newest), count(certified)


def _has_rows(report: JobReport) -> bool:
    """Return whether the rows of the report are this run's; the rows of a no-op are the last batch's.

    A run that ends as bad input, or not ready, has loaded the sound and complete files.
    """
    return report.outcome is Outcome.COMMITTED or (report.outcome is not Outcome.NO_OP and report.rows.read > 0)


def _outcome(report: JobReport) -> Text:
    code = ending(report)
    if report.waits_for:
        return Text(f"waits for {', '.join(report.waits_for)}", style="yellow")
    if report.skipped:
        return Text("skipped", style="yellow")
    words = "gate failed" if code is ExitCode.GATE_FAILED else report.outcome.value.replace("_", " ")
    return Text(words, style="green" if code is ExitCode.OK else "red")


def _seconds(report: JobReport) -> float:
    return report.timings_s.get("total", sum(report.timings_s.values()))
