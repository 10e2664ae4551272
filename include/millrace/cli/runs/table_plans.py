"""Plan the tables and intervals that a command selects."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.cli.progress import in_progress
from millrace.cli.runs.reports import worst
from millrace.cli.selection import Selection
from millrace.contracts.interval import Interval
from millrace.contracts.job.interval_args import CONTINUE_AFTER
from millrace.control.planning.planner import Planner
from millrace.control.planning.run_plans import RunPlanner, TablePlan
from millrace.errors import ExitCode
from millrace.settings import Settings


def plan_tables(
    selection: Selection, settings: Settings, *, reprocess: bool, skip_missing: bool = False
) -> list[TablePlan]:
    """Plan all intervals in build order, as if the run continued after an interval that fails.

    Args:
        selection: the tables and intervals.
        settings: the places of the lakehouse.
        reprocess: whether the intervals' rows are read again.
        skip_missing: whether a table is skipped if its landing folder is missing.
    """
    planner = RunPlanner(Planner(selection.catalog, settings), reprocess=reprocess, skip_missing=skip_missing)
    intervals = in_progress(selection.intervals, "planning the intervals")
    return [plan for interval in intervals for plan in planner.interval(selection.specs, interval)]


def reached_intervals(plans: Iterable[TablePlan]) -> tuple[list[Interval], ExitCode]:
    """Return the intervals that a run reaches, up to the first that fails, and the run's exit code.

    A wrong spec does not stop the other tables.
    """
    of_interval: dict[Interval, list[TablePlan]] = {}
    for plan in plans:
        of_interval.setdefault(plan.interval, []).append(plan)
    intervals, code = list[Interval](), ExitCode.OK
    for interval, of_tables in of_interval.items():
        intervals.append(interval)
        code = worst([code, *(plan.exit_code for plan in of_tables)])
        if not all(plan.exit_code in CONTINUE_AFTER or plan.waits_for for plan in of_tables):
            break
    return intervals, code
