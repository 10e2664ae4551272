"""Where the time of a run's tasks went: each second counts once, and a task that still waits counts until now."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome
from millrace.overview.runs.run import RunTask, Work
from millrace.overview.runs.time_split import Phase, add_up, time_split

NOON = datetime(2013, 1, 5, 12, tzinfo=UTC)
SPANS = {"start": 0.5, "plan": 1.0, "driver": 0.5, "batch": 9.0, "gate": 2.0, "total": 11.5, "waited": 4.0}


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


WRITE = RunTask(
    "shop", "r1", "bronze.orders", -1, "success", Work.WRITE, "bronze.orders", tries=2,
    asked_at=NOON, started=at(3), ended=at(17), earlier_s=6.0,
    result=TaskResult(outcome=Outcome.COMMITTED, message="", seconds=SPANS),
)  # fmt: skip


def test_each_second_of_a_task_is_in_one_phase() -> None:
    split = time_split([WRITE], at(99))
    assert split == {
        Phase.SLOT: 3.0,
        Phase.EARLIER: 6.0,
        Phase.PLAN: 1.0,
        Phase.WRITERS: 4.0,
        Phase.SPARK: 5.0,
        Phase.GATE: 2.0,
        Phase.OTHER: 2.0,
    }
    assert sum(split.values()) == 3 + 6 + 14
    of_tables = add_up([{Phase.SPARK: 2.0}, {Phase.FILES: 1.0, Phase.SPARK: 3.0}])
    assert list(of_tables.items()) == [(Phase.FILES, 1.0), (Phase.SPARK, 5.0)]


def test_a_task_without_a_report_has_its_whole_time_and_a_waiting_one_the_time_until_now() -> None:
    plain = replace(WRITE, result=None, earlier_s=0.0)
    assert time_split([plain], at(99)) == {Phase.SLOT: 3.0, Phase.OTHER: 14.0}
    gate = replace(plain, work=Work.GATE)
    assert time_split([gate], at(99)) == {Phase.SLOT: 3.0, Phase.GATE: 14.0}
    waiting = replace(plain, state="queued", started=None, ended=None)
    assert time_split([waiting], at(99)) == {Phase.SLOT: 99.0}
    running = replace(plain, state="running", ended=None)
    assert time_split([running], at(99)) == {Phase.SLOT: 3.0, Phase.SO_FAR: 96.0}
    blocked = replace(plain, state="upstream_failed", started=None, ended=at(9))
    assert time_split([blocked], at(99)) == {}


def test_a_wait_for_files_takes_no_slot_and_an_approval_no_time() -> None:
    files = replace(WRITE, work=Work.FILES, result=None, earlier_s=0.0)
    assert time_split([files, replace(files, work=Work.APPROVAL)], NOON) == {Phase.FILES: 14.0}
    still = replace(files, state="deferred", ended=None)
    assert time_split([still], at(99)) == {Phase.FILES: 96.0}
