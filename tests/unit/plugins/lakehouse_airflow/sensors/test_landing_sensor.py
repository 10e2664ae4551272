"""The sensor before a bronze table: it ends when the landing folder of the run's interval is there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization

from lakehouse_airflow.retries import DEFAULT_POLICY, RETRIES
from lakehouse_airflow.sensors.landing import LandingSensor
from lakehouse_airflow.triggers.landing import LandingTrigger
from lakehouse_airflow.ui.links import FAILED_KEY
from millrace.clock import utc_now
from millrace.errors import StorageError
from tests.support.documents.specs import bronze_document, write_specs
from tests.unit.plugins.lakehouse_airflow.operators.conftest import House, house, run_of

__all__ = ["house", "run_of"]

MakeRun = Callable[..., dict[str, Any]]
KAFKA = bronze_document("bronze.clicks", source={"kafka": "main", "topics": ["clicks"], "format": "json"})


def sensor(**given: Any) -> LandingSensor:
    return LandingSensor(**{"task_id": "files", "table": "bronze.orders", **given})


def over() -> dict[str, str]:
    """Return the event of a wait whose time is up."""
    return {"until": utc_now().isoformat(), "refused": ""}


def test_it_waits_in_the_triggerer_and_ends_when_the_folder_has_come(house: House, run_of: MakeRun) -> None:
    sensor(last_day=date(2013, 1, 4)).execute(run_of())  # outside of the data there is nothing to wait for
    with pytest.raises(TaskDeferred) as deferred:
        sensor().execute(run_of())
    assert isinstance(deferred.value.trigger, LandingTrigger)
    house.deliver()
    sensor().resume_execution(deferred.value.method_name, {"event": over()}, run_of())
    sensor().execute(run_of())


def test_a_task_that_fails_leaves_why_for_the_pages_and_a_skipped_one_nothing(house: House, run_of: MakeRun) -> None:
    failed, skipped, refused, without_spec = (run_of() for _ in range(4))
    with pytest.raises(AirflowFailException, match="no landing folder") as error:
        sensor().resume_execution("execute_complete", {"event": over()}, failed)
    assert failed["ti"].pushed[FAILED_KEY]["message"] == str(error.value)
    assert failed["ti"].pushed[FAILED_KEY]["table"] == "bronze.orders"
    with pytest.raises(AirflowSkipException, match="no landing folder"):
        sensor(soft_fail=True).resume_execution("execute_complete", {"event": over()}, skipped)
    assert skipped["ti"].pushed == {}
    with pytest.raises(StorageError):
        sensor().resume_execution("execute_complete", {"event": {**over(), "refused": "denied"}}, refused)
    assert refused["ti"].pushed[FAILED_KEY]["message"].startswith("denied\n")
    with pytest.raises(AirflowFailException):
        sensor(table="bronze.nothing").execute(without_spec)
    assert "bronze.nothing" in without_spec["ti"].pushed[FAILED_KEY]["message"]


@pytest.mark.parametrize("table", ["bronze.clicks", "bronze.nothing"])
def test_a_table_without_landing_files_fails_at_once(house: House, run_of: MakeRun, table: str) -> None:
    write_specs(house.folder / "tables", KAFKA)
    with pytest.raises(AirflowFailException, match=table):
        sensor(table=table).execute(run_of())


def test_mapped_it_has_the_retries_of_the_operators() -> None:
    with DAG("by_hand", schedule=None):
        alone = sensor()
        mapped = LandingSensor.partial(task_id="each").expand(table=["bronze.orders", "bronze.returns"])
    for task in (alone, mapped):
        assert (task.retries, task.retry_policy) == (RETRIES, DEFAULT_POLICY)
        assert DagSerialization.to_dict(task.dag)
