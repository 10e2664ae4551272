"""Running intervals without Airflow: one Spark driver for all of them, watched through the reports that it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from include.cli.output import console, show
from include.cli.runs.answers import Answer, answers_for
from include.cli.runs.driver import Driver, DriverEnd
from include.cli.runs.reports import ending, failure_lines, note_lines, report_line, report_table, window_table, worst
from include.cli.runs.run_id import new_run_id
from include.cli.selection import Selection
from include.contracts.interval import Interval
from include.contracts.job.args import WRITER_OF_LAYER
from include.contracts.job.interval_args import (
    MAINTAIN_TABLES,
    MAINTENANCE_JOBS,
    RUN_INTERVALS,
    DomainArgs,
    IntervalsArgs,
    MaintenanceArgs,
)
from include.contracts.job.report import JobReport
from include.contracts.time_format import FILE_NAME
from include.control.log.stored_tables import is_table
from include.disk_space import disk_full
from include.errors import ExitCode, Outcome
from include.paths import LakehousePaths
from include.run_retention import forget_old_runs
from include.settings import Settings
from include.specs.invalid_spec import InvalidSpec

_IDLE = {
    ExitCode.OK: Outcome.NO_OP,
    ExitCode.BAD_SPEC: Outcome.BAD_SPEC,
    ExitCode.NOT_READY: Outcome.NOT_READY,
}
"""How a table ends for which no Spark is started."""


def run_selection(
    selection: Selection,
    settings: Settings,
    *,
    reprocess: bool,
    skip_missing: bool = False,
    allow_deletes: str = "",
) -> ExitCode:
    """Run the intervals in one driver, up to the first that fails, and show how each table ended.

    A wrong spec fails its own table in each of them, and does not keep the others from their intervals.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    forget_old_runs(settings)
    run_id = new_run_id(datetime.now(UTC))
    answers = answers_for(selection, settings, reprocess=reprocess, skip_missing=skip_missing)
    to_do = _with_news(selection.intervals, answers)
    idle = [_idle_report(answer, run_id) for answer in answers if answer.interval not in to_do]
    if not to_do:
        _show_reports(selection, idle)
        show(f"{_named(selection.intervals)}: nothing is new, so no Spark was started.")
        if failures := dict.fromkeys(failure_lines(idle)):
            console(stderr=True).print("\n".join(failures), markup=False, soft_wrap=True)
        return worst(map(ending, idle))
    common = _arguments(selection, settings, run_id, f"{to_do[0].start:{FILE_NAME}}")
    wanted = {"reprocess": reprocess, "skip_missing": skip_missing}
    arguments = common.for_intervals(to_do, **wanted, allow_deletes=allow_deletes)
    return _run(selection, arguments, Driver(settings, arguments, _text_bytes(answers)), idle)


def follow_selection(selection: Selection, settings: Settings) -> ExitCode:
    """Run the tables whenever their sources have something new, in one driver, until told to stop; show each run.

    Raises:
        SpecsRefusedError: the specs of all of them are wrong.
        SparkUnavailableError: there is no Spark to start.
    """
    refused = [spec for spec in selection.specs if isinstance(spec, InvalidSpec)]
    if len(refused) == len(selection.specs):
        selection.catalog.spec(refused[0].table)
    forget_old_runs(settings)
    driver = Driver(settings, _arguments(selection, settings, new_run_id(datetime.now(UTC)), "follow"))
    out, reports = console(), list[JobReport]()
    for spec in refused:
        console(stderr=True).print(spec.warning, markup=False, soft_wrap=True)
    out.print(f"Following {selection.domain}: Ctrl-C or SIGTERM ends it after the current commit.")
    for report in driver.followed():
        if isinstance(report, str):
            out.print(report, markup=False, style="dim")
            continue
        reports = [one for one in reports if one.table != report.table] + [report]
        out.print(f"{report.interval.start:%Y-%m-%d}  ", report_line(report), sep="")
    return _conclude(driver.end(), reports, is_whole=True)


def maintain_selection(selection: Selection, settings: Settings, *, dry_run: bool) -> ExitCode:
    """Maintain the tables that exist, in one driver, and show what was done to each.

    A wrong spec fails its own table, and keeps no other one from being maintained.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    paths, out = LakehousePaths(settings.root), console()
    refused = [spec for spec in selection.specs if isinstance(spec, InvalidSpec)]
    for spec in refused:
        console(stderr=True).print(f"{spec.table}: its spec is wrong\n{spec.cause}", markup=False, soft_wrap=True)
    of_specs = ExitCode.BAD_SPEC if refused else ExitCode.OK
    sound = [spec.table for spec in selection.specs if not isinstance(spec, InvalidSpec)]
    tables = [table for table in sound if is_table(paths.table(table))]
    for table in sound:
        if table not in tables:
            out.print(f"{table}: not built yet", markup=False)
    if not tables:
        return of_specs
    common = _arguments(selection, settings, new_run_id(datetime.now(UTC)), "maintenance")
    day = selection.intervals[0]
    given = {**common.model_dump(), "table": tuple(tables), "start": day.start, "end": day.end, "dry_run": dry_run}
    arguments, reports = MaintenanceArgs(**given), list[JobReport]()
    driver = Driver(settings, arguments)
    expected = [arguments.report_of(job, table) for table in tables for job in MAINTENANCE_JOBS]
    with out.status("starting Spark"):
        for report in driver.reports(MAINTAIN_TABLES, expected):
            reports.append(report)
            if ending(report) is ExitCode.OK:
                out.print(report.message, *note_lines([report]), sep="\n", markup=False, soft_wrap=True)
    return worst([of_specs, _conclude(driver.end(), reports, is_whole=len(reports) == len(expected))])


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


def _with_news(intervals: Sequence[Interval], answers: Sequence[Answer]) -> list[Interval]:
    """The intervals for which anything is to be done; nothing to do needs no Spark."""
    busy = {answer.interval for answer in answers if not (answer.is_idle and _is_certified(answer))}
    return [interval for interval in intervals if interval in busy]


def _is_certified(answer: Answer) -> bool:
    """Whether readers may use the last batch; the driver says anew why a gate refused it."""
    advice = answer.advice
    if answer.skipped or advice is None or advice.version is None:
        return True
    return advice.certified_version is not None and advice.certified_version >= advice.version


def _text_bytes(answers: Iterable[Answer]) -> int:
    """About how much one interval's tables read, of the interval that reads most."""
    of_interval = Counter[Interval]()
    for answer in answers:
        of_interval[answer.interval] += answer.advice.text_bytes if answer.advice else 0
    return max(of_interval.values(), default=0)


def _idle_report(answer: Answer, run_id: str) -> JobReport:
    advice = answer.advice
    return JobReport(
        job=WRITER_OF_LAYER[answer.table.split(".")[0]].value,
        table=answer.table,
        outcome=_IDLE[answer.exit_code],
        message=answer.obstacle or answer.skipped or f"{answer.table}: {answer.message}",
        interval=answer.interval,
        run_id=run_id,
        batch_seq=advice.batch_seq if advice else None,
        version=advice.version if advice else None,
        certified_version=advice.certified_version if advice else None,
        notes=advice.notes if advice else (),
        waits_for=answer.waits_for,
        skipped=bool(answer.skipped),
    )


def _run(selection: Selection, arguments: IntervalsArgs, driver: Driver, idle: Sequence[JobReport]) -> ExitCode:
    tables, out, reports = [spec.table for spec in selection.specs], console(), list[JobReport]()
    awaited = [(interval, table) for interval in arguments.intervals for table in tables]
    with out.status(f"{arguments.intervals[0]}: starting Spark") as status:
        for report in driver.reports(RUN_INTERVALS, (arguments.report_of(*one) for one in awaited)):
            reports.append(report)
            of_day = f"{report.interval.start:%Y-%m-%d}  " if len(arguments.intervals) > 1 else ""
            out.print(of_day, report_line(report), sep="")
            left = awaited[len(reports) :]
            status.update(f"{left[0][0]}: {left[0][1]}" if left else "ending")
    _show_reports(selection, [*idle, *reports])
    code = _conclude(driver.end(), [*idle, *reports], is_whole=len(reports) % len(tables) == 0 and bool(reports))
    last = reports[-1].interval if reports else arguments.intervals[0]
    if later := arguments.intervals[arguments.intervals.index(last) + 1 :]:
        console(stderr=True).print(f"{last} did not end well. Not run: {_named(later)}", markup=False, soft_wrap=True)
    return code


def _show_reports(selection: Selection, reports: Sequence[JobReport]) -> None:
    """How the tables ended: each by itself for one interval, in sum for several."""
    tables, intervals = [spec.table for spec in selection.specs], {report.interval for report in reports}
    shown = report_table(reports, tables) if len(intervals) < 2 else window_table(reports, tables)
    show(shown, *note_lines(reports))


def _named(intervals: Sequence[Interval]) -> str:
    first, last = intervals[0], intervals[-1]
    return (
        str(first)
        if first == last
        else f"{len(intervals)} intervals from {first.start:%Y-%m-%d} to {last.start:%Y-%m-%d}"
    )


def _conclude(end: DriverEnd, reports: Sequence[JobReport], *, is_whole: bool) -> ExitCode:
    """Say on stderr what went wrong, if anything did, and where the driver's log is."""
    code = worst(ending(report) for report in reports)
    err = console(stderr=True)
    if not is_whole or (code is ExitCode.OK and end.exit_code != 0):
        code = worst([code, _of_process(end.exit_code)])
        if code is ExitCode.DISK_FULL:
            err.print(str(disk_full("The Spark driver", end.log.parent)), markup=False, soft_wrap=True)
        err.print(f"The Spark driver ended with exit code {end.exit_code}:\n{end.last_words}", markup=False)
    if code is not ExitCode.OK:
        lines = (*dict.fromkeys(failure_lines(reports)), f"driver log: {end.log}")
        err.print("\n".join(lines), markup=False, soft_wrap=True)
    return code


def _of_process(exit_code: int) -> ExitCode:
    """The ending that the process states by itself; one that it cannot have meant is a failure."""
    return ExitCode(exit_code) if exit_code in set(ExitCode) - {ExitCode.OK} else ExitCode.FAILED
