"""Which interval a run is for: the one place that decides it.

Scheduled and backfill runs carry it. A manual run's inferred interval is another day than its date says, so it is
taken only where the two agree; the form's Day says it otherwise. Runs that an asset event triggers take the event's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from include.contracts.interval import Interval

if TYPE_CHECKING:
    from airflow.sdk import Context

ASSET_TRIGGERED = "asset_triggered"
CLOCK = ("scheduled", "backfill")
EXAMPLE_DAY = date(2013, 1, 5)


@dataclass(frozen=True)
class RunDates:
    """What Airflow, and the person who asked for a run, say about its dates.

    Attributes:
        run_type: Airflow's word for who asked: `scheduled`, `backfill`, `manual`, `asset_triggered`, ...
        logical_date: the date the run was given, if any.
        start: start of the interval that Airflow gave or inferred.
        end: its end.
        day: the form's Day, `YYYY-MM-DD`: the UTC day that is meant.
        events: the extras of the asset events that triggered the run.
    """

    run_type: str
    logical_date: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    day: str | None = None
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def by_hand(self) -> bool:
        """Whether a person (or another DAG) asked for this very run, and waits for an answer."""
        return self.run_type not in (*CLOCK, ASSET_TRIGGERED)


def run_dates(context: Context) -> RunDates:
    """The dates of the run that `context` belongs to."""
    run = context["dag_run"]
    triggering = context.get("triggering_asset_events") or {}
    return RunDates(
        run_type=str(getattr(run.run_type, "value", run.run_type)),
        logical_date=run.logical_date,
        start=run.data_interval_start,
        end=run.data_interval_end,
        day=context["params"].get("day"),
        events=tuple(event.extra for events in triggering.values() for event in events),
    )


def interval_of(dates: RunDates) -> Interval:
    """The interval that the run is for.

    Raises:
        AirflowFailException: the dates do not say it; the message says what to type.
    """
    if dates.run_type in CLOCK:
        return _of_the_clock(dates)
    if dates.day:
        return _of_the_day(dates.day)
    if dates.run_type == ASSET_TRIGGERED:
        return _of_the_events(dates.events)
    return _by_hand(dates)


def outside_data(interval: Interval, first_day: date | None, last_day: date | None) -> str:
    """Why there can be no data for the interval, in one line; empty when there can.

    Args:
        interval: the interval of a run.
        first_day: the first UTC day for which the source has data; None when there is no limit.
        last_day: the last one, inclusive.
    """
    if last_day and interval.start >= _midnight(last_day + timedelta(days=1)):
        return f"no data after {last_day}: nothing to do for {interval}"
    if first_day and interval.end <= _midnight(first_day):
        return f"no data before {first_day}: nothing to do for {interval}"
    return ""


def label_interval(dates: RunDates, now: datetime) -> Interval:
    """The interval under which maintenance is reported, which decides nothing: the run's own, or the day of `now`."""
    if dates.start and dates.end and dates.end > dates.start:
        return Interval(start=dates.start, end=dates.end)
    return _of_the_day(now.astimezone(UTC).date().isoformat())


def _of_the_clock(dates: RunDates) -> Interval:
    if dates.day:
        raise AirflowFailException(
            f"A {dates.run_type} run carries its own date, so it takes no Day ({dates.day}): "
            "leave `day` out of its configuration, or trigger that one day by hand."
        )
    if dates.start is None or dates.end is None:
        raise AirflowFailException(
            f"This {dates.run_type} run has no data interval: give its DAG a CronDataIntervalTimetable."
        )
    return Interval(start=dates.start, end=dates.end)


def _of_the_day(day: str) -> Interval:
    try:
        start = _midnight(date.fromisoformat(day))
    except ValueError:
        raise AirflowFailException(f"Day is {day!r}, which is no date: write it like {EXAMPLE_DAY}.") from None
    return Interval(start=start, end=start + timedelta(days=1))


def _of_the_events(events: tuple[Mapping[str, Any], ...]) -> Interval:
    spans = {(event.get("interval_start"), event.get("interval_end")) for event in events}
    stated = sorted((str(start), str(end)) for start, end in spans if start and end)
    if not stated or len(stated) < len(spans):
        raise AirflowFailException(
            "An asset event that triggered this run carries no interval (it was made by hand, or by another tool): "
            f"trigger this DAG by hand with {_typed(EXAMPLE_DAY)}."
        )
    if len(stated) > 1:
        days = ", ".join(start[:10] for start, _ in stated)
        raise AirflowFailException(
            f"The asset events that triggered this run are for different intervals ({days}): "
            f"trigger this DAG by hand for one after the other, the first with {_typed(stated[0][0][:10])}."
        )
    start, end = stated[0]
    return Interval(start=datetime.fromisoformat(start), end=datetime.fromisoformat(end))


def _by_hand(dates: RunDates) -> Interval:
    if dates.logical_date is None or dates.start is None or dates.end is None:
        raise AirflowFailException(f"This run has no date: trigger it again with {_typed(EXAMPLE_DAY)}.")
    if dates.start == dates.logical_date:
        return Interval(start=dates.start, end=dates.end)
    raise AirflowFailException(
        f"Which day is this run for? It was triggered by hand for {dates.logical_date:%Y-%m-%d} without a Day, and the "
        f"interval that Airflow infers from that starts on {dates.start:%Y-%m-%d}, another day. "
        f"Trigger it again with {_typed(dates.logical_date.date())}, or with the other day if that one was meant."
    )


def _typed(day: date | str) -> str:
    return f"Day = {day} in the form (in the API or CLI: conf " + f'{{"day": "{day}"}})'


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), tzinfo=UTC)
