"""What a run decides by its dates, and a task by the type of its error."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import RetryAction
from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.factory.defaults import run_form
from lakehouse_airflow.intervals import RunDates, interval_of, label_interval, outside_data, run_dates
from lakehouse_airflow.retries import RETRIES, Backoff, TypedRetryPolicy, error_of
from millrace.contracts.interval import Interval
from millrace.contracts.job.contention import LeaseWait
from millrace.contracts.job.report import JobReport
from millrace.errors import (
    BadInputError,
    ConflictError,
    ConservationError,
    DiskFullError,
    GateFailedError,
    LeaseLostError,
    MillraceError,
    NotReadyError,
    SparkUnavailableError,
    SpecError,
    TornLogError,
)
from tests.support.ledger.delta_tables import day

JAN_4 = datetime(2013, 1, 4, tzinfo=UTC)
JAN_5 = datetime(2013, 1, 5, tzinfo=UTC)
JAN_6 = datetime(2013, 1, 6, tzinfo=UTC)
FIFTH = Interval(start=JAN_5, end=JAN_6)


def event(start: datetime, end: datetime) -> dict[str, Any]:
    return {"interval_start": start.isoformat(), "interval_end": end.isoformat(), "version": 3}


@pytest.mark.parametrize("run_type", ["scheduled", "backfill", "manual"])
def test_an_interval_that_starts_at_the_date_of_the_run_is_taken_as_it_is(run_type: str) -> None:
    assert interval_of(RunDates(run_type, logical_date=JAN_5, start=JAN_5, end=JAN_6)) == FIFTH


@pytest.mark.parametrize("run_type", ["manual", "operator_triggered", "asset_materialization"])
def test_the_day_of_the_form_is_the_whole_utc_day(run_type: str) -> None:
    now = datetime(2026, 7, 1, 13, 5, tzinfo=UTC)
    inferred = now.replace(hour=0, minute=0)
    dates = RunDates(run_type, logical_date=now, start=inferred - timedelta(days=1), end=inferred, day="2013-01-05")
    assert interval_of(dates) == FIFTH
    assert interval_of(RunDates(run_type, day="2013-01-05")) == FIFTH


def test_a_manual_run_whose_inferred_interval_is_another_day_says_what_to_type() -> None:
    with pytest.raises(AirflowFailException) as refused:
        interval_of(RunDates("manual", logical_date=JAN_5, start=JAN_4, end=JAN_5))
    message = str(refused.value)
    assert "triggered by hand for 2013-01-05" in message
    assert "starts on 2013-01-04" in message
    assert 'Day = 2013-01-05 in the form (in the API or CLI: conf {"day": "2013-01-05"})' in message


@pytest.mark.parametrize(
    ("dates", "said"),
    [
        (RunDates("manual"), "has no date: trigger it again with Day = "),
        (RunDates("manual", day="5 January"), "Day is '5 January'"),
        (RunDates("backfill", start=JAN_5, end=JAN_6, day="2013-01-07"), "carries its own date"),
        (RunDates("scheduled", logical_date=JAN_5), "CronDataIntervalTimetable"),
        (RunDates("scheduled", logical_date=JAN_5, start=JAN_5, end=JAN_5), "CronDataIntervalTimetable"),
        (RunDates("asset_triggered"), "has no interval"),
        (RunDates("asset_triggered", events=({"interval_start": JAN_5.isoformat()}, event(JAN_5, JAN_6))), "has no"),
    ],
)
def test_a_run_without_an_interval_says_what_to_type(dates: RunDates, said: str) -> None:
    with pytest.raises(AirflowFailException, match=said):
        interval_of(dates)


def test_asset_events_that_disagree_are_to_be_run_one_by_one() -> None:
    assert interval_of(RunDates("asset_triggered", events=(event(JAN_5, JAN_6), event(JAN_5, JAN_6)))) == FIFTH
    with pytest.raises(
        AirflowFailException, match=r"different intervals \(2013-01-04, 2013-01-05\).*once for each of them"
    ):
        interval_of(RunDates("asset_triggered", events=(event(JAN_5, JAN_6), event(JAN_4, JAN_5))))


def test_the_interval_of_a_table_that_reads_whatever_is_new_spans_those_of_all_events() -> None:
    events = (event(JAN_5, JAN_6), event(JAN_4, JAN_5), {"version": 3})
    spanned = interval_of(RunDates("asset_triggered", events=events), may_span=True)
    assert (spanned.start, spanned.end) == (JAN_4, JAN_6)
    with pytest.raises(AirflowFailException, match="has no interval"):
        interval_of(RunDates("asset_triggered", events=({"version": 3},)), may_span=True)


def test_the_days_of_the_data_are_inclusive() -> None:
    assert outside_data(FIFTH, date(2013, 1, 5), date(2013, 1, 5)) == ""
    assert outside_data(FIFTH, None, None) == ""
    assert outside_data(FIFTH, None, date(2013, 1, 4)).startswith("no data after 2013-01-04")
    assert outside_data(FIFTH, date(2013, 1, 6), None).startswith("no data before 2013-01-06")


def test_maintenance_has_an_interval_whatever_started_it() -> None:
    now = datetime(2026, 7, 1, 13, 5, tzinfo=UTC)
    assert label_interval(RunDates("manual"), now).start == datetime(2026, 7, 1, tzinfo=UTC)
    assert label_interval(RunDates("scheduled", start=JAN_5, end=JAN_6), now) == FIFTH
    assert label_interval(RunDates("manual", start=JAN_4, end=JAN_5, day="2013-01-05"), now) == FIFTH


def test_the_dates_are_read_from_the_context_of_a_run() -> None:
    events = {"silver.flights": [SimpleNamespace(extra=event(JAN_5, JAN_6))]}
    run = SimpleNamespace(
        run_type=SimpleNamespace(value="asset_triggered"),
        logical_date=None,
        data_interval_start=None,
        data_interval_end=None,
        conf={"day": None},
    )
    context: Any = {"dag_run": run, "params": {"day": None}, "triggering_asset_events": events}
    context["dag"] = SimpleNamespace(params=run_form())
    dates = run_dates(context)
    assert (dates.run_type, dates.is_manual, interval_of(dates)) == ("asset_triggered", False, FIFTH)
    run.conf = {"reproces": True}
    with pytest.raises(AirflowFailException, match=r"'reproces', which is no field .*\ndid you mean 'reprocess'\?"):
        run_dates(context)


def delays(error: Exception) -> list[timedelta | None]:
    policy = TypedRetryPolicy()
    decisions = [policy.evaluate(error, number, RETRIES) for number in range(1, RETRIES + 1)]
    assert {decision.action for decision in decisions} == {RetryAction.RETRY}
    return [decision.retry_delay for decision in decisions]


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ConflictError("lost"), 10),
        (LeaseLostError("lost", LeaseWait()), 10),
        (SparkUnavailableError("down"), 15),
        (NotReadyError("late"), 5 * 60),
        (DiskFullError("no space left"), 5 * 60),
    ],
)
def test_what_may_pass_by_itself_is_tried_again_soon_and_then_less_often(error: Exception, seconds: int) -> None:
    assert delays(error) == [timedelta(seconds=times * seconds) for times in (1, 2, 4, 8)]


@pytest.mark.parametrize("kind", [SpecError, BadInputError, GateFailedError, TornLogError, ConservationError])
def test_what_a_person_must_look_at_is_not_tried_again(kind: type[MillraceError]) -> None:
    decision = TypedRetryPolicy().evaluate(kind("cause\nfour frames"), 1, RETRIES)
    assert (decision.action, decision.reason) == (RetryAction.FAIL, "cause"), "the first line alone"
    ran = {"job": "silver_merge", "table": "silver.orders", "interval": day(), "run_id": "run"}
    report = JobReport(outcome=kind.outcome, message="cause", **ran)
    assert isinstance(error_of(report, "driver.log"), AirflowFailException)


def test_the_delays_and_the_number_of_retries_of_an_error_can_be_set() -> None:
    backoff = Backoff(timedelta(seconds=2), factor=3, longest=timedelta(seconds=20), retries=4)
    policy = TypedRetryPolicy(conflict=backoff)
    decisions = [policy.evaluate(ConflictError("lost"), number, 9) for number in range(1, 6)]
    assert [decision.retry_delay for decision in decisions] == [
        *(timedelta(seconds=seconds) for seconds in (2, 6, 18, 20)),
        None,
    ]
    assert [decision.action for decision in decisions] == [RetryAction.RETRY] * 4 + [RetryAction.FAIL]
    assert policy.evaluate(ConflictError("lost"), 2000, 9999).action is RetryAction.FAIL
    assert Backoff(timedelta(seconds=1)).delay(500) == timedelta(hours=1)
    assert policy.evaluate(NotReadyError("late"), 1, 9).retry_delay == timedelta(minutes=5)


def test_a_task_that_was_cleared_begins_with_short_delays_again() -> None:
    cleared: Any = {"task": SimpleNamespace(retries=4)}
    policy = TypedRetryPolicy(conflict=Backoff(timedelta(seconds=10), retries=2))
    decisions = [policy.evaluate(ConflictError("lost"), number, 5 + 4, cleared) for number in (6, 7, 8)]
    assert [decision.retry_delay for decision in decisions] == [timedelta(seconds=10), timedelta(seconds=20), None]
    assert policy.evaluate(ConflictError("lost"), 2, 4, cleared).retry_delay == timedelta(seconds=20)


@pytest.mark.parametrize("kind", [ConflictError, NotReadyError, SparkUnavailableError, DiskFullError])
def test_what_may_pass_by_itself_ends_the_task_with_the_error_that_is_tried_again(kind: type[MillraceError]) -> None:
    ran = {"job": "silver_merge", "table": "silver.orders", "interval": day(), "run_id": "run"}
    error = error_of(JobReport(outcome=kind.outcome, message="cause", **ran), "driver.log")
    assert type(error) is kind
    assert str(error) == "cause\nThe driver's whole output: driver.log"


@pytest.mark.parametrize("error", [RuntimeError("?"), KeyboardInterrupt()])
def test_everything_else_keeps_the_tasks_own_retries(error: BaseException) -> None:
    assert TypedRetryPolicy().evaluate(error, 1, RETRIES).action is RetryAction.DEFAULT
