"""The days of a plan as a page shows them: what each table would do, and the runs that Airflow has and would make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakehouse_airflow.pages.airflow_dags import DayRun
from millrace.contracts.interval import Interval
from millrace.control.planning.run_plans import PlanKind, TablePlan
from millrace.errors import ExitCode
from millrace.overview.window_plan import LoadedRows, PastBatches, WindowPlan

_WITHOUT_VALUES = {
    ExitCode.NOT_READY: "not ready: a table or a full snapshot that it reads is not",
    ExitCode.GATE_FAILED: "its gate refuses the last batch",
    ExitCode.DELETES_REFUSED: "stops before many deletes, which need an approval",
    ExitCode.BAD_INPUT: "files or columns do not fit",
    ExitCode.OK: "loads files, some of which failed before",
}
"""Exit code -> what a person reads who may not see values of rows."""

_MISSING, _FAILED, _SUCCESS = "", "failed", "success"
_NO_RUN = DayRun("", _MISSING)


@dataclass(frozen=True)
class ShownPlan:
    """What one day would do to one table.

    Attributes:
        plan: the plan.
        text: the plan in one line, with values of rows only for those who may see them.
        ways: what helps, one line each.
        loaded: what past batches loaded for the day; None for nothing.
    """

    plan: TablePlan
    text: str
    ways: Sequence[str]
    loaded: LoadedRows | None


@dataclass(frozen=True)
class ShownDay:
    """One day.

    Attributes:
        day: the day.
        plans: the plan of each table.
        run: the state of the run that Airflow has for it; empty for none.
        is_occupied: whether that run has only the date of the day, but the interval of another one.
        has_ended: whether the day is over. A backfill leaves out all others.
    """

    day: Interval
    plans: Sequence[ShownPlan]
    run: str
    is_occupied: bool
    has_ended: bool

    @property
    def is_idle(self) -> bool:
        """Whether a run of the day has nothing to do, or cannot begin."""
        return all(each.plan.is_idle for each in self.plans)

    @property
    def writes(self) -> int:
        """The number of tables that it would write."""
        return sum(each.plan.has_new_data for each in self.plans)

    @property
    def troubles(self) -> list[str]:
        """Why tables would fail or wait, each reason once, without the tables that only wait for another one."""
        failing = (each.plan for each in self.plans if each.plan.exit_code is not ExitCode.OK)
        return list(dict.fromkeys(plan.kind.value for plan in failing if not plan.waits_for))


@dataclass(frozen=True)
class BackfillRuns:
    """The runs that a backfill of the days would make, by Airflow's *Reprocess Behavior*.

    Attributes:
        missing: the days without a run.
        failed: the days whose run has failed.
        done: the days whose run has succeeded.
        busy: the days with a run that has not ended; a backfill leaves them out.
        to_come: the days that are not over; a backfill leaves them out.
        behavior: the value of the least behavior that runs every day with work.
    """

    missing: int
    failed: int
    done: int
    busy: int
    to_come: int
    behavior: str

    @property
    def by_behavior(self) -> dict[str, tuple[str, int]]:
        """Value of a behavior -> its name in Airflow's form, and the number of runs that it makes."""
        return {
            "none": ("Missing Runs", self.missing),
            "failed": ("Missing and Errored Runs", self.missing + self.failed),
            "completed": ("All Runs", self.missing + self.failed + self.done),
        }


def shown_days(
    plan: WindowPlan, runs: Mapping[datetime, DayRun], now: datetime, *, may_see_rows: bool
) -> list[ShownDay]:
    """Return the planned days.

    Args:
        plan: the plan.
        runs: start of a day -> the run of its date.
        now: the time.
        may_see_rows: whether the user may see values of rows.
    """
    return [
        ShownDay(
            day,
            [_shown(each, plan.past.get(each.table, PastBatches()), may_see_rows) for each in plans],
            run.state,
            not run.is_of_day,
            day.end <= now,
        )
        for day, plans in plan.intervals.items()
        for run in [runs.get(day.start, _NO_RUN)]
    ]


def backfill_runs(days: Sequence[ShownDay]) -> BackfillRuns:
    """Return the runs that a backfill of some days would make."""
    over = [day for day in days if day.has_ended]
    states = [day.run for day in over]
    with_work = {day.run for day in over if not day.is_idle}
    ends = {_FAILED: "failed", _SUCCESS: "completed"}
    return BackfillRuns(
        missing=states.count(_MISSING),
        failed=states.count(_FAILED),
        done=states.count(_SUCCESS),
        busy=sum(state not in (_MISSING, *ends) for state in states),
        to_come=len(days) - len(over),
        behavior=next((ends[state] for state in (_SUCCESS, _FAILED) if state in with_work), "none"),
    )


def remarks(days: Sequence[ShownDay], *, may_see_rows: bool) -> Iterator[tuple[str, str]]:
    """Yield ("to do" or "note", text), each text once and with its tables; notes may quote values of rows."""
    every = [each for day in days for each in day.plans]
    yield from (("to do", text) for text in _with_tables((each.plan.table, way) for each in every for way in each.ways))
    advices = [each.plan.advice for each in every if each.plan.advice] if may_see_rows else []
    yield from (("note", text) for text in _with_tables((each.table, note) for each in advices for note in each.notes))


def _with_tables(remarks_of_tables: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield each text once, after the tables that have it and that it does not name."""
    tables: dict[str, dict[str, None]] = {}
    for table, text in remarks_of_tables:
        tables.setdefault(text, {}).update({} if table in text else {table: None})
    return (f"{', '.join(names)}: {text}" if names else text for text, names in tables.items())


def _shown(plan: TablePlan, past: PastBatches, may_see_rows: bool) -> ShownPlan:
    loaded = past.loaded.get(plan.interval.start)
    if may_see_rows or _has_no_value(plan):
        # The kind of the plan stands before its text.
        return ShownPlan(
            plan, plan.message.removeprefix(f"{PlanKind.NOTHING}: "), plan.obstacle.split("\n")[1:], loaded
        )
    blocked = f"waits for {' and '.join(plan.waits_for)}" if plan.waits_for else ""
    return ShownPlan(plan, blocked or _WITHOUT_VALUES.get(plan.exit_code, "fails"), (), loaded)


def _has_no_value(plan: TablePlan) -> bool:
    """Whether the message of a plan quotes nothing that a gate has observed, or that was found in a file."""
    is_of_source = plan.exit_code is ExitCode.NOT_READY and plan.table.startswith("bronze.")
    quotes_files = plan.advice is not None and plan.advice.failing_files
    return not quotes_files and (is_of_source or plan.exit_code in (ExitCode.OK, ExitCode.BAD_SPEC))
