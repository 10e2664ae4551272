"""Run intervals without Airflow: one Spark driver runs all of them, and writes a report for each table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from millrace.cli.listings.health import measure_tables
from millrace.cli.output import console, show, show_problem
from millrace.cli.progress import new_bar
from millrace.cli.runs.driver import Driver, DriverEnd
from millrace.cli.runs.reports import ending, failure_lines, note_lines, report_line, report_table, window_table, worst
from millrace.cli.runs.table_plans import plan_tables
from millrace.cli.selection import Selection, new_run_id
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import WRITER_OF_LAYER
from millrace.contracts.job.interval_args import MOST_TIME, DomainArgs, IntervalsArgs, MaintenanceArgs
from millrace.contracts.job.report import JobReport
from millrace.control.maintenance.health_days import keep_health
from millrace.control.maintenance.holding import keep_log
from millrace.control.maintenance.plan import actions_of_run
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.run_plans import TablePlan
from millrace.control.repair.dropped import delete_expired
from millrace.disk_space import disk_full
from millrace.errors import ExitCode, MillraceError, Outcome
from millrace.paths import LakehousePaths
from millrace.run_retention import delete_old_runs
from millrace.settings import Settings
from millrace.spark_conf import LARGE_LOAD
from millrace.specs.invalid_spec import InvalidSpec

_IDLE = {ExitCode.OK: Outcome.NO_OP, ExitCode.BAD_SPEC: Outcome.BAD_SPEC, ExitCode.NOT_READY: Outcome.NOT_READY}
"""Exit code -> outcome of a table for which no Spark is started."""


def run_selection(
    selection: Selection, settings: Settings, *, reprocess: bool, skip_missing: bool = False, allow_deletes: str = ""
) -> ExitCode:
    """Run the intervals in one driver, up to the first that fails, and show how each table ended.

    A wrong spec fails only its own table, in each interval.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    delete_old_runs(settings)
    run_id = new_run_id(datetime.now(UTC))
    plans = plan_tables(selection, settings, reprocess=reprocess, skip_missing=skip_missing)
    busy = {plan.interval for plan in plans if not (plan.is_idle and _is_certified(plan))}
    to_do = [interval for interval in selection.intervals if interval in busy]
    idle = [_idle_report(plan, run_id) for plan in plans if plan.interval not in to_do]
    if not to_do:
        _show_reports(selection, idle)
        show(f"{_span(selection.intervals)}: nothing is new, so no Spark was started.")
        if failures := list(failure_lines(idle, settings.paths)):
            show_problem("\n".join(failures))
        _announce(idle, settings)
        return worst(map(ending, idle))
    arguments = _arguments(selection, settings, run_id).for_intervals(
        to_do, reprocess=reprocess, skip_missing=skip_missing, allow_deletes=allow_deletes
    )
    large_load = sum(plan.advice.bytes for plan in plans if plan.advice) >= LARGE_LOAD
    return _run(selection, arguments, Driver(settings, arguments, large_load=large_load), idle, settings)


def follow_selection(selection: Selection, settings: Settings) -> ExitCode:
    """Run the tables in one driver whenever their sources have something new, until it is stopped; show each run.

    Raises:
        SpecsRefusedError: the specs of all tables are wrong.
        SparkUnavailableError: there is no Spark to start.
    """
    invalid = [spec for spec in selection.specs if isinstance(spec, InvalidSpec)]
    if len(invalid) == len(selection.specs):
        selection.catalog.spec(invalid[0].table)
    delete_old_runs(settings)
    driver = Driver(settings, _arguments(selection, settings, new_run_id(datetime.now(UTC)), "follow"))
    out, reports = console(), list[JobReport]()
    for spec in invalid:
        show_problem(spec.warning)
    out.print(f"Following {selection.domain}: Ctrl-C or SIGTERM ends it after the current commit.")
    for report in driver.follow():
        if isinstance(report, str):
            out.print(report, markup=False, style="dim")
            continue
        reports = [earlier for earlier in reports if earlier.table != report.table] + [report]
        out.print(f"{report.interval.start:%Y-%m-%d}  ", report_line(report), sep="")
        if report.certified_moved:
            _announce([report], settings)
    return _conclude(driver.end(), reports, settings.paths, is_whole=True)


def maintain_selection(selection: Selection, settings: Settings, allow_deletes: str = "") -> ExitCode:
    """Maintain the tables that need it, in one driver, and show what was done to each; without any, start no Spark.

    One run does what a run of the DAG does, within the same bounds; the next run goes on. What tables keep for a short
    time only is deleted if `allow_deletes` names a person who allows it.

    A wrong spec, a table that cannot be measured, and one whose lease is not free to keep its log, fail only their own
    table.

    Raises:
        SparkUnavailableError: there is no Spark to start.
    """
    paths, out = settings.paths, console()
    measured = measure_tables(selection.catalog, selection.specs, settings)
    chosen, run_id = actions_of_run(measured.tables, is_allowed=bool(allow_deletes)), new_run_id(measured.at)
    ops = OpsTables(paths)
    code = measured.code
    for each in measured.tables:
        try:
            keep_log(each.health, ops, run_id)
        except MillraceError as error:
            show_problem(str(error))
            code = worst([code, error.exit_code])
        keep_health(selection.catalog.spec(each.table), selection.catalog, ops, measured.at, each.health)
    deleted = list(delete_expired(ops, run_id, measured.at))
    idle = [f"{each.table}: nothing to do: {each.reason}" for each in measured.tables if not each.actions]
    asked = [action for table in measured.tables for action in table.actions if action.needs_approval]
    shown = [f"{action.table}: {action.step}: {in_bytes(action.size or 0)}: {action.reason}" for action in asked]
    if shown and not allow_deletes:
        shown.append("A person has to allow this (--allow-deletes), since the tables keep it for a short time only.")
    for line in (*deleted, *idle, *measured.remarks, *shown):
        out.print(line, markup=False, soft_wrap=True)
    held_back = [each for each in measured.tables if each.health.in_danger or each.health.has_lost_hold]
    for each in held_back:
        show_problem(f"{each.table}: VACUUM refused: {each.reason}\n{each.health.way_out}")
    code = worst([code, ExitCode.FAILED if held_back else ExitCode.OK])
    if not chosen:
        return code
    common = _arguments(selection, settings, run_id, "maintenance")
    own = {
        "table": [action.table for action in chosen],
        "job": [action.step.job for action in chosen],
        "interval": selection.intervals[0],
        "until": measured.at + MOST_TIME,
        "allow_deletes": allow_deletes,
    }
    arguments, reports = MaintenanceArgs(**{**common.model_dump(), **own}), list[JobReport]()
    driver = Driver(settings, arguments)
    expected = [arguments.report_of(job, table) for table, job in arguments.actions]
    with new_bar(out) as bar:
        task = bar.add_task("starting Spark", total=len(expected))
        for report in driver.run("jobs/maintain_tables.py", expected):
            reports.append(report)
            bar.update(task, advance=1, description="maintaining the tables")
            if ending(report) is ExitCode.OK:
                out.print(report.message, *note_lines([report]), sep="\n", markup=False, soft_wrap=True)
    every = actions_of_run(measured.tables, is_allowed=bool(allow_deletes), most_bytes=sys.maxsize)
    if left := len(every) - len(chosen):
        show(f"{counted(left, 'action')} did not fit into this run: run it again.")
    return worst([code, _conclude(driver.end(), reports, paths, is_whole=len(reports) == len(expected))])


def _arguments(selection: Selection, settings: Settings, run_id: str, folder: str = "") -> DomainArgs:
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


def _is_certified(plan: TablePlan) -> bool:
    """Return whether readers may use the last batch; if not, the driver reports again why the gate refused it."""
    advice = plan.advice
    if plan.skipped or advice is None or advice.version is None:
        return True
    return advice.certified_version is not None and advice.certified_version >= advice.version


def _idle_report(plan: TablePlan, run_id: str) -> JobReport:
    advice = plan.advice
    return JobReport(
        job=WRITER_OF_LAYER[plan.table.split(".")[0]].value,
        table=plan.table,
        outcome=_IDLE[plan.exit_code],
        message=plan.obstacle or plan.skipped or f"{plan.table}: {plan.message}",
        interval=plan.interval,
        run_id=run_id,
        batch_seq=advice.batch_seq if advice else None,
        version=advice.version if advice else None,
        certified_version=advice.certified_version if advice else None,
        notes=advice.notes if advice else (),
        waits_for=plan.waits_for,
        skipped=bool(plan.skipped),
    )


def _announce(reports: Sequence[JobReport], settings: Settings) -> None:
    """Tell Airflow of certified versions, if the settings name one; the run does not depend on it."""
    if settings.airflow is None:
        return
    # Imported here, because the HTTP client takes time to import.
    from millrace.cli.runs.asset_events import announce

    lines, problem = announce(reports, settings.airflow, settings.paths)
    show(*lines)
    if problem:
        show_problem(problem)


def _run(
    selection: Selection, arguments: IntervalsArgs, driver: Driver, idle: Sequence[JobReport], settings: Settings
) -> ExitCode:
    tables, out, reports = [spec.table for spec in selection.specs], console(), list[JobReport]()
    expected = [(interval, table) for interval in arguments.intervals for table in tables]
    with new_bar(out) as bar:
        task = bar.add_task(f"{arguments.intervals[0].label}: starting Spark", total=len(expected))
        for report in driver.run("jobs/run_intervals.py", (arguments.report_of(*run) for run in expected)):
            reports.append(report)
            day = f"{report.interval.start:%Y-%m-%d}  " if len(arguments.intervals) > 1 else ""
            out.print(day, report_line(report), sep="")
            remaining = expected[len(reports) :]
            doing = f"{remaining[0][0].label}: {remaining[0][1]}" if remaining else "ending"
            bar.update(task, advance=1, description=doing)
    _show_reports(selection, [*idle, *reports])
    code = _conclude(
        driver.end(), [*idle, *reports], settings.paths, is_whole=len(reports) % len(tables) == 0 and bool(reports)
    )
    last = reports[-1].interval if reports else arguments.intervals[0]
    if later := arguments.intervals[arguments.intervals.index(last) + 1 :]:
        show_problem(f"{last.label} did not end well. Not run: {_span(later)}")
    _announce([*idle, *reports], settings)
    return code


def _show_reports(selection: Selection, reports: Sequence[JobReport]) -> None:
    """Show how the tables ended: each run for one interval, totals for several."""
    tables, intervals = [spec.table for spec in selection.specs], {report.interval for report in reports}
    shown = report_table(reports, tables) if len(intervals) < 2 else window_table(reports, tables)
    show(shown, *note_lines(reports))


def _span(intervals: Sequence[Interval]) -> str:
    first, last = intervals[0], intervals[-1]
    span = f"{len(intervals)} intervals from {first.start:%Y-%m-%d} to {last.start:%Y-%m-%d}"
    return first.label if first == last else span


def _conclude(end: DriverEnd, reports: Sequence[JobReport], paths: LakehousePaths, *, is_whole: bool) -> ExitCode:
    """Print failures and the place of the driver's log to stderr, and return the exit code."""
    code = worst(ending(report) for report in reports)
    if not is_whole or (code is ExitCode.OK and end.exit_code != 0):
        is_stated = end.exit_code in set(ExitCode) - {ExitCode.OK}
        code = worst([code, ExitCode(end.exit_code) if is_stated else ExitCode.FAILED])
        if code is ExitCode.DISK_FULL:
            show_problem(str(disk_full("The Spark driver", end.log.parent)))
        show_problem(f"The Spark driver ended with exit code {end.exit_code}:\n{end.last_lines}")
    if code is not ExitCode.OK:
        show_problem("\n".join((*failure_lines(reports, paths), f"driver log: {end.log}")))
    return code
