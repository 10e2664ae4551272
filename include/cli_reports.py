"""What the CLI says of the reports of a run: how each table ended, and what was refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from include.cli_views import MISSING, count, new_table
from include.contracts.job_report import CheckResult, JobReport
from include.errors import ExitCode, Outcome

_BY_SEVERITY = (
    ExitCode.OK,
    ExitCode.NOT_READY,
    ExitCode.CONFLICT,
    ExitCode.SPARK_UNAVAILABLE,
    ExitCode.GATE_FAILED,
    ExitCode.BAD_INPUT,
    ExitCode.BAD_SPEC,
    ExitCode.DISK_FULL,
    ExitCode.FAILED,
    ExitCode.INCONSISTENT,
)
"""From the ending that mends itself to the one that a person must look at."""

_FATES = ("read", "applied", "unchanged", "superseded", "quarantined", "dropped")


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The most severe of several endings.

    >>> worst([ExitCode.OK, ExitCode.NOT_READY, ExitCode.GATE_FAILED]).name
    'GATE_FAILED'
    """
    return max(codes, key=_BY_SEVERITY.index, default=ExitCode.OK)


def ending(report: JobReport) -> ExitCode:
    """How a table's run ended: a committed version that its gate refused counts as a failed gate."""
    refused = report.exit_code is ExitCode.OK and any(refusals(report))
    return ExitCode.GATE_FAILED if refused else report.exit_code


def refusals(report: JobReport) -> list[CheckResult]:
    """The rules for which the gate refused the version."""
    return [check for check in report.checks if check.refuses]


def report_line(report: JobReport) -> Text:
    """One line as a table's run ends."""
    rows = f"  {count(report.rows.read)} rows read, {count(report.rows.applied)} applied" if _has_rows(report) else ""
    return Text.assemble(f"{report.table:<32} ", _outcome(report), f"{rows}  {_seconds(report):.1f} s")


def report_table(reports: Iterable[JobReport], tables: Iterable[str]) -> Table:
    """How each of `tables` ended; one that the driver did not reach has no figures."""
    numbers = (*_FATES, "version", "certified", "seconds")
    shown = new_table("table", "outcome", *numbers, numbers=numbers)
    by_table = {report.table: report for report in reports}
    for table in tables:
        report = by_table.get(table)
        if report is None:
            shown.add_row(table, Text("not run", style="dim"), *[MISSING] * len(numbers))
            continue
        fates = [count(getattr(report.rows, fate) if _has_rows(report) else None) for fate in _FATES]
        versions = (count(report.version), count(report.certified_version))
        shown.add_row(table, _outcome(report), *fates, *versions, f"{_seconds(report):.1f}")
    return shown


def note_lines(reports: Iterable[JobReport]) -> list[str]:
    """The remarks of all tables, each once."""
    return list(dict.fromkeys(f"note: {note}" for report in reports for note in report.notes))


def failure_lines(reports: Iterable[JobReport]) -> Iterator[str]:
    """What a person must know of each table that did not end well; those that only waited for one are left out."""
    for report in reports:
        only_waited = report.outcome is Outcome.NOT_READY and not report.error_class
        if ending(report) is not ExitCode.OK and not only_waited:
            yield f"{report.table}: {_first_words(report.message.removeprefix(f'{report.table}: '))}"
        for check in refusals(report):
            rows = "" if check.unexpected_rows is None else f", {check.unexpected_rows:,} rows"
            why = check.error or f"observed {check.observed}{rows}"
            yield f"{report.table}: refused by {check.rule}: {check.reason or 'no reason stated'} ({why})"


def _first_words(message: str) -> str:
    """The message without a stack trace, which is in the driver's log."""
    return re.split(r"\n\s*at ", message, maxsplit=1)[0]


def _has_rows(report: JobReport) -> bool:
    """Whether the rows of the report are this run's; those of a no-op are the last batch's.

    A run that ends as bad input, or not ready, has loaded the files that were sound and whole.
    """
    return report.outcome is Outcome.COMMITTED or (report.outcome is not Outcome.NO_OP and report.rows.read > 0)


def _outcome(report: JobReport) -> Text:
    code = ending(report)
    words = "gate failed" if code is ExitCode.GATE_FAILED else report.outcome.value.replace("_", " ")
    return Text(words, style="green" if code is ExitCode.OK else "red")


def _seconds(report: JobReport) -> float:
    return report.timings_s.get("total", sum(report.timings_s.values()))
