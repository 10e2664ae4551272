"""The type of an error alone says whether a task is tried again, and when."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import RetryAction
from airflow.sdk.exceptions import AirflowFailException

from include.contracts.job.contention import LeaseWait
from include.contracts.job.report import JobReport
from include.errors import (
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
from lakehouse_airflow.retries import RETRIES, Backoff, TypedRetryPolicy, error_of
from tests.support.ledger.delta_tables import day


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
