"""The DAGs of the project, and their policies."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from airflow.api_fastapi.core_api.services.ui.task_group import task_group_to_dict
from airflow.jobs.job import Job as AirflowJob
from airflow.models.pool import Pool
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, CronDataIntervalTimetable
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
from sqlalchemy import delete
from sqlalchemy.orm import Session

from embedded.clone import DEMO
from lakehouse_airflow.assets import PROPOSED_COLUMNS
from lakehouse_airflow.factory.defaults import EXECUTION_TIMEOUT
from lakehouse_airflow.operators.second_person import APPROVE, SecondPersonApprovalOperator
from lakehouse_airflow.operators.table_rebuild import TableRebuildOperator
from lakehouse_airflow.retries import TypedRetryPolicy
from lakehouse_airflow.sensors.landing import LandingSensor
from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.column_fix import ColumnFix

DAG_IDS = {
    "column_approvals",
    "delete_approval",
    "erase_subject",
    "flights",
    "gate_override",
    "quarantine_replay",
    "table_maintenance",
    "table_rebuild",
    "table_repair",
    "table_vacuum",
}
TABLES = {
    "bronze": {"flight_events", "weather", "planes"},
    "silver": {"flights", "weather", "planes"},
    "gold": {"route_performance_daily", "delay_by_weather"},
}
NAMES = {f"{layer}.{name}" for layer, names in TABLES.items() for name in names}
SENSORS = {f"bronze.{name}.files" for name in TABLES["bronze"]}


def labels(dag: DAG) -> dict[str, str]:
    """Return task id -> its name in the grid and in the graph, as Airflow's web server computes them."""
    groups = [task_group_to_dict(DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_group)]
    names = {}
    while groups:
        for node in groups.pop()["children"]:
            groups += [node] if "children" in node else []
            names |= {} if "children" in node else {node["id"]: node["label"]}
    return names


def test_these_dags_exist_and_no_others(dags: dict[str, DAG]) -> None:
    assert set(dags) == DAG_IDS, "add a new DAG to DAG_IDS: this test notices a missing one"


def test_each_table_of_the_domain_is_written_and_checked(dags: dict[str, DAG]) -> None:
    assert {spec.table for spec in load_catalog(DEMO / "tables").of_domain("flights")} == NAMES
    assert set(dags["flights"].task_ids) == NAMES | {f"{table}_gate" for table in NAMES} | SENSORS
    assert set(dags["flights"].task_group.get_task_group_dict()) == {None, *TABLES}


def test_the_name_of_a_task_in_the_ui_has_layer_and_table(dags: dict[str, DAG]) -> None:
    names = labels(dags["flights"])
    own = {**{table: table for table in NAMES}, **{f"{table}_gate": f"{table} gate" for table in NAMES}}
    assert names == {**own, **{sensor: sensor.replace(".files", " files") for sensor in SENSORS}}


def test_maintenance_is_a_plan_and_a_task_for_each_action_one_at_a_time(dags: dict[str, DAG]) -> None:
    maintenance = dags["table_maintenance"]
    assert set(maintenance.task_ids) == {"plan", "maintain"}
    maintain = maintenance.get_task("maintain")
    assert (maintain.is_mapped, maintain.pool, maintain.upstream_task_ids) == (True, "maintenance", {"plan"})
    assert maintenance.params["vacuum_dry_run"] is False


def test_a_rebuild_is_a_dry_run_then_an_approval_then_a_job(dags: dict[str, DAG]) -> None:
    dag = dags["table_rebuild"]
    dry_run, rebuild = dag.get_task("dry_run"), dag.get_task("rebuild")
    assert isinstance(dry_run, TableRebuildOperator)
    assert isinstance(rebuild, TableRebuildOperator)
    assert (dry_run.is_dry_run, rebuild.is_dry_run) == (True, False)
    assert (dag.get_task("approve").execution_timeout, rebuild.execution_timeout) == (None, EXECUTION_TIMEOUT)
    assert isinstance(dag.get_task("approve"), SecondPersonApprovalOperator)
    assert dag.get_task("approve").upstream_task_ids == {"dry_run"}
    assert rebuild.upstream_task_ids == {"approve"}
    assert dag.get_task("run_again").upstream_task_ids == {"rebuild"}


def test_a_repair_is_a_dry_run_then_an_approval_then_a_task(dags: dict[str, DAG]) -> None:
    dag = dags["table_repair"]
    assert dag.timetable.can_be_scheduled is False
    approve, repair = dag.get_task("approve"), dag.get_task("repair")
    assert isinstance(approve, SecondPersonApprovalOperator)
    assert (approve.execution_timeout, repair.execution_timeout) == (None, EXECUTION_TIMEOUT)
    assert (approve.upstream_task_ids, repair.upstream_task_ids) == ({"dry_run"}, {"approve"})
    assert set(dag.params) == {"table", "action", "to", "where", "source", "no_reload", "why"}


def test_an_erasure_is_an_approval_then_a_job_and_its_form_takes_no_key(dags: dict[str, DAG]) -> None:
    dag = dags["erase_subject"]
    assert dag.timetable.can_be_scheduled is False
    approve, erase = dag.get_task("approve"), dag.get_task("erase")
    assert isinstance(approve, SecondPersonApprovalOperator)
    assert (approve.response_timeout, erase.upstream_task_ids) == (None, {"approve"})
    assert_keeps_the_policies(erase)
    assert set(dag.params) == {"kind", "request", "subjects", "now", "why"}


def test_a_vacuum_of_what_is_kept_shortly_is_an_approval_then_a_job(dags: dict[str, DAG]) -> None:
    dag = dags["table_vacuum"]
    assert dag.timetable.can_be_scheduled is False
    assert set(dag.params.get_param("table").schema["enum"]) == NAMES
    approve, vacuum = dag.get_task("approve"), dag.get_task("vacuum")
    assert isinstance(approve, SecondPersonApprovalOperator)
    assert (approve.response_timeout, vacuum.upstream_task_ids) == (None, {"approve"})
    assert_keeps_the_policies(vacuum)


def test_people_are_asked_when_a_table_proposes_columns(dags: dict[str, DAG]) -> None:
    asking = dags["column_approvals"]
    assert asking.timetable.asset_condition.objects == (PROPOSED_COLUMNS,)
    assert asking.get_task("approve").upstream_task_ids == {"open_questions"}


def test_a_replay_runs_by_hand_only_and_its_form_offers_every_table_that_refuses_rows(dags: dict[str, DAG]) -> None:
    dag = dags["quarantine_replay"]
    assert dag.timetable.can_be_scheduled is False
    assert set(dag.params.get_param("table").schema["enum"]) == {name for name in NAMES if not name.startswith("gold.")}
    assert dag.params["dry_run"] is True
    assert {"ids", "reason", "all_rows", "set_column", "set_value", "set_by", "set_values", "why"} <= set(dag.params)
    ways = get_args(get_args(ColumnFix)[0])
    offered = dag.params.get_param("set_how").schema["enum"]
    assert offered == [None, *(how for way in ways for how in get_args(way.model_fields["how"].annotation))]
    replay, approve = dag.get_task("replay"), dag.get_task("approve")
    assert replay.upstream_task_ids == {approve.task_id} == {APPROVE}
    assert (approve.execution_timeout, approve.response_timeout) == (None, None), "a question waits"
    assert (replay.job, replay.table) == (Job.QUARANTINE_REPLAY, "{{ params.table }}")
    assert_keeps_the_policies(replay)


def test_an_override_runs_by_hand_only_and_needs_a_version_a_reason_and_an_approval(dags: dict[str, DAG]) -> None:
    dag = dags["gate_override"]
    assert dag.timetable.can_be_scheduled is False
    assert set(dag.params.get_param("table").schema["enum"]) == NAMES
    for name in ("table", "version", "reason"):
        with pytest.raises(ParamValidationError):
            dag.params.get_param(name).resolve()
    assert dag.get_task("approve").upstream_task_ids == set()
    assert dag.get_task("override").upstream_task_ids == {"approve"}
    assert dag.get_task("run_again").upstream_task_ids == {"override"}
    assert dags["delete_approval"].get_task("run_again").upstream_task_ids == {"allow"}


def test_every_dag_that_people_answer_starts_unpaused_and_no_other_one(dags: dict[str, DAG]) -> None:
    asking = {name for name, dag in dags.items() if any(isinstance(task, ApprovalOperator) for task in all_tasks(dag))}
    assert asking == DAG_IDS - {"flights", "table_maintenance"}
    assert {name for name, dag in dags.items() if dag.is_paused_upon_creation is False} == asking


def all_tasks(dag: DAG) -> list[Any]:
    """Return the tasks of a DAG; of a mapped task an object of its class."""
    mapped = {"approve": {"table": "bronze.a", "column": "b"}, "maintain": {"table": "bronze.a", "job": "table_vacuum"}}
    return [task.unmap(mapped[task.task_id]) if task.is_mapped else task for task in dag.tasks]


def test_every_dag_has_a_description_tags_and_owners(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        assert dag.catchup is False
        assert all((dag.doc_md, dag.description))
        assert "lakehouse" in dag.tags
        assert dag.dag_display_name != dag.dag_id
        assert not {"", "airflow"} & {task.owner for task in dag.tasks}


def test_every_dag_of_spark_jobs_keeps_the_policies(dags: dict[str, DAG]) -> None:
    flights, maintenance = dags["flights"], dags["table_maintenance"]
    assert flights.timetable == CronDataIntervalTimetable("0 0 * * *", timezone="UTC")
    assert (flights.start_date, flights.end_date) == (datetime(2013, 1, 1, tzinfo=UTC), None)
    assert isinstance(maintenance.timetable, CronDataIntervalTimetable)
    for task in (*flights.tasks, *maintenance.tasks):
        assert_keeps_the_policies(task)
    least = min(task.priority_weight for task in flights.tasks)
    assert least > max(task.priority_weight for task in maintenance.tasks), "writers have priority over maintenance"


def assert_keeps_the_policies(task: Any) -> None:
    pools = {"plan": "default_pool", "maintain": "maintenance", "vacuum": "maintenance"}
    assert task.pool == pools.get(task.task_id, "default_pool" if isinstance(task, LandingSensor) else "spark")
    assert isinstance(task.retry_policy, TypedRetryPolicy)
    assert task.retries >= 1
    assert timedelta(0) < task.execution_timeout <= timedelta(hours=6)
    assert task.weight_rule == "absolute"
    assert task.params.dump() == {}, "a task has the DAG's form, and no copy of it"


def test_the_form_asks_for_a_day_and_may_be_left_empty(dags: dict[str, DAG]) -> None:
    form = dags["flights"].params
    assert form.dump() == {"day": None, "reprocess": False}
    schema = form.get_param("day").schema
    assert (schema["type"], schema["format"], schema["title"]) == (["null", "string"], "date", "Day")
    form.update({"day": "2013-01-05"})
    assert form.validate()["day"] == "2013-01-05"


def test_the_pool_of_the_tasks_is_created_when_airflow_starts_and_is_never_changed(database: Session) -> None:
    def slots() -> int | None:
        database.expire_all()
        pool = Pool.get_pool("spark", session=database)
        return pool.slots if pool else None

    database.execute(delete(Pool).where(Pool.pool == "spark"))
    database.commit()
    missing = slots()
    database.rollback()
    AirflowJob()
    created = slots()
    Pool.create_or_update_pool("spark", 7, "more", include_deferred=False, session=database)
    database.commit()
    AirflowJob()
    assert (missing, created, slots()) == (None, os.cpu_count(), 7)
