"""Decide which interval a run is for; no other module decides this.

Scheduled and backfill runs carry their interval. Airflow infers the interval of a manual run, and may infer another day
than the run's date, so it is used only where the two agree; otherwise the form's Day decides. A run that asset events
trigger takes the interval of the events. Airflow may start one run for the events of several days: bronze loads one
interval in a run, and the interval of the other layers, which read whatever is new, then spans them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from millrace.contracts.interval import Interval
from millrace.errors import Outcome
from millrace.specs.problem import did_you_mean

if TYPE_CHECKING:
    from airflow.sdk import Context

ASSET_TRIGGERED = "asset_triggered"
BACKFILL = "backfill"
CLOCK = ("scheduled", BACKFILL)
EXAMPLE_DAY = date(2013, 1, 5)

_DELETE_RUN = "Delete this run (on its page, or DELETE /api/v2/dags/<dag>/dagRuns/<run>)"
_SAME_DATES = f"{_DELETE_RUN}: cleared, it has the same dates again"


class WrongRunError(AirflowFailException):
    """Raised when the dates or the form of a run do not say what it loads: another run must take its place."""

    outcome = Outcome.WRONG_RUN


@dataclass(frozen=True)
class RunDates:
    """The dates of a run, from Airflow and from the form.

    Attributes:
        run_type: the kind of run as Airflow calls it: `scheduled`, `backfill`, `manual`, `asset_triggered`, ...
        logical_date: the run's date, if it has one.
        start: start of the interval that Airflow set or inferred.
        end: end of that interval.
        day: the form's Day, a UTC day `YYYY-MM-DD`.
        events: the extras of the asset events that triggered the run.
    """

    run_type: str
    logical_date: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    day: str | None = None
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_manual(self) -> bool:
        """Whether a person (or another DAG) triggered the run, and waits for its result."""
        return self.run_type not in (*CLOCK, ASSET_TRIGGERED)

    @property
    def occupied(self) -> datetime | None:
        """The date of a scheduled run that Airflow does not make while this run exists; None if it is in no way.

        Airflow gives a manual run the interval that *ends* at its date, and makes one run per date: at the exact date
        of a scheduled run, a manual one keeps the schedule from running that interval, and a backfill takes it over.
        Source: https://github.com/apache/airflow/issues/41208
        """
        return self.logical_date if self.start != self.logical_date == self.end else None


def run_dates(context: Context) -> RunDates:
    """Return the dates of the run of `context`.

    Raises:
        WrongRunError: its configuration has a key that is no field of the DAG's form. Airflow ignores it.
    """
    run = context["dag_run"]
    fields = list(context["dag"].params)
    for key in run.conf or {}:
        if key not in fields:
            raise WrongRunError(
                f"The configuration of this run has {key!r}, which is no field of the DAG's form.\n"
                f"{did_you_mean(key, fields)}\nTrigger it again. A key that other tasks read needs a Param of the DAG."
            )
    triggering = context.get("triggering_asset_events") or {}
    return RunDates(
        run_type=str(getattr(run.run_type, "value", run.run_type)),
        logical_date=run.logical_date,
        start=run.data_interval_start,
        end=run.data_interval_end,
        day=context["params"].get("day"),
        events=tuple(event.extra for events in triggering.values() for event in events),
    )


def interval_of(dates: RunDates, *, may_span: bool = False) -> Interval:
    """Return the interval that the run is for.

    Args:
        dates: the dates of the run.
        may_span: whether the interval may span those of several asset events.

    Raises:
        WrongRunError: the dates do not determine it; the message says what to type.
    """
    if dates.run_type in CLOCK:
        return _scheduled_interval(dates)
    if dates.day:
        return _day_interval(dates.day)
    if dates.run_type == ASSET_TRIGGERED:
        return _event_interval(dates.events, may_span=may_span)
    return _manual_interval(dates)


def due_interval(
    context: Context, table: str, first_day: date | None = None, last_day: date | None = None
) -> Interval | str:
    """Return the interval for which a run loads a table, or in one line why there can be no data for it.

    Args:
        context: the context of a task of the run.
        table: the table; one of silver or gold reads whatever is new, so that its interval may span several events.
        first_day: the first UTC day with data; None for no limit.
        last_day: the last UTC day with data; None for no limit.

    Raises:
        WrongRunError: the dates do not determine it, or a person triggered the run for a day without data.
    """
    dates = run_dates(context)
    interval = interval_of(dates, may_span=not table.startswith("bronze."))
    reason = outside_data(interval, first_day, last_day)
    if reason and dates.is_manual:
        raise WrongRunError(f"{table}: {reason}. Trigger it again with a Day inside the data.")
    return reason or interval


def outside_data(interval: Interval, first_day: date | None, last_day: date | None) -> str:
    """Return in one line why the source has no data for the interval; empty if it can have data.

    Args:
        interval: the interval of a run.
        first_day: the first UTC day with data; None for no limit.
        last_day: the last UTC day with data; None for no limit.
    """
    if last_day and interval.start >= _midnight(last_day + timedelta(days=1)):
        return f"no data after {last_day}: nothing to do for {interval.label}"
    if first_day and interval.end <= _midnight(first_day):
        return f"no data before {first_day}: nothing to do for {interval.label}"
    return ""


def label_interval(dates: RunDates, now: datetime) -> Interval:
    """Return the interval for reports of a task that depends on none: the run's own, or else the day of `now`."""
    if dates.day and dates.is_manual:
        return _day_interval(dates.day)
    if dates.start and dates.end and dates.end > dates.start:
        return Interval(start=dates.start, end=dates.end)
    return _day_interval(now.astimezone(UTC).date().isoformat())


def _scheduled_interval(dates: RunDates) -> Interval:
    if dates.day:
        raise WrongRunError(
            f"A {dates.run_type} run carries its own date, so it takes no Day ({dates.day}): "
            "leave `day` out of its configuration, or trigger that one day by hand."
        )
    if dates.start is None or dates.end is None or dates.end <= dates.start:
        raise WrongRunError(
            f"This {dates.run_type} run has no data interval: give its DAG a CronDataIntervalTimetable."
        )
    if dates.logical_date not in (None, dates.start):
        raise WrongRunError(
            f"This {dates.run_type} run has the date {dates.logical_date:%Y-%m-%d}, but an interval that starts on "
            f"{dates.start:%Y-%m-%d}: it was triggered by hand, and a backfill has taken it over.\n"
            f"{_DELETE_RUN}, then backfill {dates.logical_date:%Y-%m-%d} again."
        )
    return Interval(start=dates.start, end=dates.end)


def _day_interval(day: str) -> Interval:
    try:
        start = _midnight(date.fromisoformat(day))
    except ValueError:
        raise WrongRunError(f"Day is {day!r}, which is not a date: write it like {EXAMPLE_DAY}.") from None
    return Interval(start=start, end=start + timedelta(days=1))


def _event_interval(events: tuple[Mapping[str, Any], ...], *, may_span: bool) -> Interval:
    spans = {(event.get("interval_start"), event.get("interval_end")) for event in events}
    intervals = sorted((str(start), str(end)) for start, end in spans if start and end)
    if not intervals or (len(intervals) < len(spans) and not may_span):
        raise WrongRunError(
            "An asset event that triggered this run has no interval (a person or another tool created it): "
            f"trigger this DAG by hand with {_day_input(EXAMPLE_DAY)}."
        )
    if len(intervals) > 1 and not may_span:
        days = ", ".join(start[:10] for start, _ in intervals)
        raise WrongRunError(
            f"The asset events that triggered this run are for different intervals ({days}): "
            f"trigger this DAG by hand once for each of them, first with {_day_input(intervals[0][0][:10])}."
        )
    starts, ends = zip(*intervals, strict=True)
    return Interval(start=min(map(datetime.fromisoformat, starts)), end=max(map(datetime.fromisoformat, ends)))


def _manual_interval(dates: RunDates) -> Interval:
    if dates.logical_date is None or dates.start is None or dates.end is None:
        raise WrongRunError(f"This run has no date: trigger it again with {_day_input(EXAMPLE_DAY)}.\n{_SAME_DATES}.")
    if dates.start == dates.logical_date:
        return Interval(start=dates.start, end=dates.end)
    raise WrongRunError(
        f"Which day is this run for? It was triggered by hand for {dates.logical_date:%Y-%m-%d} without a Day, and the "
        f"interval that Airflow infers from that starts on {dates.start:%Y-%m-%d}, another day. "
        f"Trigger it again with {_day_input(dates.logical_date.date())}, or with the other day if that one was meant."
        f"\n{_SAME_DATES}" + ("; while it exists, Airflow schedules none for that date." if dates.occupied else ".")
    )


def _day_input(day: date | str) -> str:
    return f"Day = {day} in the form (in the API or CLI: conf " + f'{{"day": "{day}"}})'


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
