"""A write task whose landing files are not there yet waits in the triggerer, as its spec says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from include.clock import utc_now
from include.errors import NotReadyError, StorageError
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.triggers.landing import LandingTrigger
from tests.support.documents.specs import bronze_document, write_specs
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House

MakeRun = Callable[..., dict[str, Any]]

COMMITTED = """
report(Outcome.COMMITTED, "loaded 1 of 1 files", batch_seq=1, version=1, certified_version=1, rows=RowCounts(applied=1))
"""
NO_TRIGGERER = {"error": "Trigger timeout"}


def writer(**given: Any) -> TableWriteOperator:
    return TableWriteOperator(**{"task_id": "orders", "table": "bronze.orders", "deferrable": True, **given})


def spec(house: House, **source: Any) -> None:
    """Change the source of the spec."""
    document = bronze_document()
    write_specs(house.folder / "tables", {**document, "source": {**document["source"], **source}})


def deferral(attempt: Callable[[], Any]) -> tuple[TaskDeferred, LandingTrigger]:
    with pytest.raises(TaskDeferred) as deferred:
        attempt()
    assert isinstance(deferred.value.trigger, LandingTrigger)
    return deferred.value, deferred.value.trigger


def test_a_task_without_its_folder_waits_as_long_and_looks_as_often_as_the_spec_says(
    house: House, run_of: MakeRun
) -> None:
    spec(house, wait={"timeout": "3 hours", "poke_interval": "5 minutes"})
    before = utc_now()
    deferred, trigger = deferral(lambda: writer().execute(run_of()))
    assert trigger.folder == "orders/date=2013-01-05"
    assert (trigger.root, trigger.poke_interval) == (str(house.landing), 300.0)
    assert timedelta(0) <= trigger.until - before - timedelta(hours=3) < timedelta(minutes=1)
    assert trigger.first_look - before >= timedelta(minutes=5)
    assert deferred.timeout is not None
    assert deferred.timeout > timedelta(hours=3), "Airflow itself ends the wait later, if no triggerer does"


def test_when_the_time_is_up_the_task_fails_at_once_and_says_what_to_do(house: House, run_of: MakeRun) -> None:
    until = utc_now() + timedelta(minutes=7)
    _, trigger = deferral(lambda: writer().execute_complete(run_of(), {"until": until.isoformat(), "refused": ""}))
    assert trigger.until == until, "a second wait ends when the first would have ended"
    event = {"until": utc_now().isoformat(), "refused": ""}
    with pytest.raises(AirflowFailException, match=r"no landing folder .*source\.wait\.timeout is 1:15:00") as failed:
        writer().execute_complete(run_of(), event)
    assert str(failed.value).endswith("clear this task with the tasks after it.")


@pytest.mark.parametrize("run", [{"run_type": "backfill"}, {}])
def test_a_backfill_a_spec_without_patience_and_a_task_that_is_not_deferrable_do_not_wait(
    house: House, run_of: MakeRun, run: dict[str, str]
) -> None:
    if not run:
        spec(house, wait={"timeout": "0 seconds"})
    with pytest.raises(AirflowFailException, match="a backfill does not wait" if run else "timeout is 0:00:00"):
        writer().execute(run_of(**run))
    with pytest.raises(NotReadyError, match="no landing folder"):
        writer(deferrable=False).execute(run_of(**run))


def test_a_wait_that_no_triggerer_has_ended_ends_in_a_last_look(
    house: House, run_of: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AirflowFailException, match="no landing folder"):
        writer().resume_execution("__fail__", NO_TRIGGERER, run_of())
    assert "does `airflow triggerer` run?" in capsys.readouterr().out


def test_a_folder_that_the_triggerer_may_not_read_is_named(house: House, run_of: MakeRun) -> None:
    event = {"until": utc_now().isoformat(), "refused": "s3://lake/landing cannot be read (AccessDenied)"}
    with pytest.raises(StorageError, match=r"(?s)AccessDenied.*the same access as the workers"):
        writer().execute_complete(run_of(), event)


@pytest.mark.usefixtures("warm_server")
def test_files_that_are_all_too_young_are_waited_for_but_not_beside_older_ones(house: House, run_of: MakeRun) -> None:
    spec(house, min_age="10 minutes")
    house.deliver("young.json")
    before = utc_now()
    _, trigger = deferral(lambda: writer().execute(run_of()))
    assert trigger.first_look - before >= timedelta(minutes=10)
    house.job(COMMITTED)
    old = house.deliver("old.json")
    os.utime(old, (time.time() - 3600,) * 2)
    assert writer().execute(run_of())["outcome"] == "committed"
