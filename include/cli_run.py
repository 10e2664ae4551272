"""Running intervals without Airflow: one Spark driver an interval, watched through the reports that it leaves."""

from __future__ import annotations

from datetime import UTC, datetime

from include.cli_driver import Driver, DriverEnd
from include.cli_outlook import outlook
from include.cli_output import console, show
from include.cli_reports import ending, failure_lines, note_lines, report_line, report_table, worst
from include.cli_run_id import new_run_id
from include.cli_selection import Selection
from include.contracts.interval_args import DomainArgs, IntervalArgs
from include.contracts.job_report import JobReport
from include.disk_space import disk_full
from include.errors import ExitCode
from include.settings import Settings
from include.specs.refused import RefusedSpec


def run_selection(selection: Selection, settings: Settings, *, reprocess: bool) -> ExitCode:
    """Run every interval in turn, up to the first that fails, and show how each table ended.

    A wrong spec fails its own table in each of them, and does not keep the others from their intervals.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    run_id, codes = new_run_id(datetime.now(UTC)), list[ExitCode]()
    for interval in selection.intervals:
        common = _arguments(selection, settings, run_id, f"{interval.start:%Y-%m-%dT%H%M%SZ}")
        codes.append(_run_interval(selection, common.at(interval, reprocess=reprocess), settings))
        if codes[-1] not in (ExitCode.OK, ExitCode.BAD_SPEC):
            break
    return worst(codes)


def follow_selection(selection: Selection, settings: Settings) -> ExitCode:
    """Run the tables whenever their sources have something new, in one driver, until told to stop; show each run.

    Raises:
        SpecsRefusedError: the specs of all of them are wrong.
        SparkUnavailableError: there is no Spark to start.
    """
    refused = [spec for spec in selection.specs if isinstance(spec, RefusedSpec)]
    if len(refused) == len(selection.specs):
        selection.catalog.spec(refused[0].table)
    driver = Driver(settings, _arguments(selection, settings, new_run_id(datetime.now(UTC)), "follow"))
    out, reports = console(), list[JobReport]()
    for spec in refused:
        console(stderr=True).print(spec.warning, markup=False, soft_wrap=True)
    out.print(f"Following {selection.domain}: Ctrl-C or SIGTERM ends it after the current commit.")
    for report in driver.followed():
        reports = [one for one in reports if one.table != report.table] + [report]
        out.print(report_line(report))
    return _conclude(driver.end(), reports, [report.table for report in reports])


def _arguments(selection: Selection, settings: Settings, run_id: str, folder: str) -> DomainArgs:
    tables = tuple(spec.table for spec in selection.specs)
    return DomainArgs(
        domain=selection.domain,
        run_id=run_id,
        root=settings.root,
        landing=settings.landing,
        tables=settings.tables,
        reports=settings.run_paths.reports / run_id / folder,
        table=tables if selection.names_tables else (),
    )


def _run_interval(selection: Selection, arguments: IntervalArgs, settings: Settings) -> ExitCode:
    tables = [spec.table for spec in selection.specs]
    ahead, out = outlook(selection, arguments, settings), console()
    if ahead.idle:
        show(report_table(ahead.idle, tables), *note_lines(ahead.idle))
        show(f"{arguments.interval}: nothing is new, so no Spark was started.")
        if failures := list(failure_lines(ahead.idle)):
            console(stderr=True).print("\n".join(failures), markup=False, soft_wrap=True)
        return worst(map(ending, ahead.idle))
    driver = Driver(settings, arguments, ahead.text_bytes)
    reports: list[JobReport] = []
    with out.status(f"{arguments.interval}: starting Spark") as status:
        for report in driver.reports(tables):
            reports.append(report)
            out.print(report_line(report))
            waiting = [table for table in tables if table not in {one.table for one in reports}]
            status.update(f"{arguments.interval}: {waiting[0] if waiting else 'ending'}")
    show(report_table(reports, tables), *note_lines(reports))
    return _conclude(driver.end(), reports, tables)


def _conclude(end: DriverEnd, reports: list[JobReport], tables: list[str]) -> ExitCode:
    """Say on stderr what went wrong, if anything did, and where the driver's log is."""
    code = worst(ending(report) for report in reports)
    err = console(stderr=True)
    if code is ExitCode.OK and (end.exit_code != 0 or len(reports) < len(tables)):
        code = _of_process(end.exit_code)
        if code is ExitCode.DISK_FULL:
            err.print(str(disk_full("The Spark driver", end.log.parent)), markup=False, soft_wrap=True)
        err.print(f"The Spark driver ended with exit code {end.exit_code}:\n{end.last_words}", markup=False)
    if code is not ExitCode.OK:
        err.print("\n".join((*failure_lines(reports), f"driver log: {end.log}")), markup=False, soft_wrap=True)
    return code


def _of_process(exit_code: int) -> ExitCode:
    """The ending that the process states by itself; one that it cannot have meant is a failure."""
    return ExitCode(exit_code) if exit_code in set(ExitCode) - {ExitCode.OK} else ExitCode.FAILED
