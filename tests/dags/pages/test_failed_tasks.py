"""A table whose task has failed stands on top of the page Lakehouse, until somebody has dealt with the task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from airflow.models.dagrun import DagRun
from airflow.models.renderedtifields import RenderedTaskInstanceFields
from airflow.models.xcom import XComModel
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from lakehouse_airflow.pages.paths import action_path
from lakehouse_airflow.ui.links import (
    FAILED_KEY,
    OVERRIDE_DAG_ID,
    REBUILD_DAG_ID,
    dag_path,
    lakehouse_path,
    table_path,
    trigger_path,
)
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome
from millrace.overview.attention import Attention, Remedy, Trouble
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.table_overview import TableOverview
from tests.dags.pages.conftest import deny_rows
from tests.support.airflow.logins import login
from tests.support.airflow.shop_runs import HAND_WRITTEN
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import Shown, show
from tests.support.airflow.shown_runs import Ended, add_dags, add_run
from tests.support.documents.specs import bronze_spec, silver_spec

NOW = datetime.now(UTC)
MARCH = datetime(2013, 3, 1, tzinfo=UTC)
RUN = "scheduled__of_march"


@pytest.fixture(scope="module")
def run(database: Session) -> DagRun:
    """A run of the flights."""
    return add_run(database, "flights", RUN, {}, state=DagRunState.FAILED, day=MARCH)


@pytest.fixture(scope="module")
def mapped(database: Session, tmp_path_factory: pytest.TempPathFactory) -> DagRun:
    """A run of a DAG that somebody has written by hand, with the operators in a mapped task group."""
    add_dags(database, tmp_path_factory.mktemp("dags"), HAND_WRITTEN)
    return add_run(database, "mapped", RUN, {}, state=DagRunState.FAILED, day=MARCH)


def end_task(run: DagRun, database: Session, task_id: str, state: str, at: datetime = NOW) -> None:
    [task] = [task for task in run.get_task_instances(session=database) if task.task_id == task_id]
    task.state, task.end_date = state, at
    database.commit()


def render(run: DagRun, database: Session, task_id: str, **fields: str) -> None:
    """Record the rendered arguments of a task, as its worker does before it works."""
    [task] = [task for task in run.get_task_instances(session=database) if task.task_id == task_id]
    database.merge(RenderedTaskInstanceFields(task, render_templates=False, rendered_fields=fields))
    database.commit()


def tables(server: TestClient) -> Shown:
    return show(server, lakehouse_path("tables"))


def test_a_failed_task_is_named_with_a_link_until_it_is_dealt_with(
    server: TestClient, database: Session, run: DagRun
) -> None:
    end_task(run, database, "silver.weather_gate", "failed")
    end_task(run, database, "bronze.planes.files", "failed")
    page = tables(server)
    assert "run failed" in page.row("silver.weather")
    assert "run failed" in page.row("bronze.planes")
    assert "the task silver.weather gate failed in the run scheduled__of_march" in page.words
    assert "/dags/flights/runs/scheduled__of_march/tasks/silver.weather_gate" in page.links
    assert "run failed" in show(server, table_path("silver.weather")).words
    end_task(run, database, "silver.weather_gate", "success")
    end_task(run, database, "bronze.planes.files", "failed", NOW - timedelta(days=8))
    assert "run failed" not in tables(server).words


def test_a_failed_task_says_why_and_what_it_has_said_to_who_may_see_values_of_rows(
    server: TestClient, database: Session, run: DagRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = TaskResult(outcome=Outcome.BAD_INPUT, message=f"weather.csv: line 7 has {EVIL}\nDeliver it again.")
    end_task(run, database, "bronze.weather", "failed")
    end_task(run, database, "bronze.planes", "failed")
    place = {"dag_id": run.dag_id, "run_id": run.run_id, "task_id": "bronze.weather"}
    XComModel.set(FAILED_KEY, broken.to_xcom(), **place, session=database)
    database.commit()
    text = tables(server).words
    why = "its input cannot be loaded"
    assert f"{why} weather.csv: line 7 has {EVIL} Deliver it again." in text
    assert "Deliver it again. Its log says more." not in text, "one way out is enough"
    assert "the task bronze.planes failed in the run scheduled__of_march: it left no report" in text
    assert f"line 7 has {EVIL}" in show(server, table_path("bronze.weather")).words
    deny_rows(monkeypatch)
    text = tables(server).words
    assert why in text
    assert "line 7" not in text
    assert f"{why} Its log says more." in text


def test_a_table_that_does_not_fit_its_spec_leads_to_the_form_that_rebuilds_it(
    server: TestClient, database: Session, run: DagRun
) -> None:
    misfit = TaskResult(outcome=Outcome.BAD_INPUT, message="silver.flights: does not fit its spec", is_misfit=True)
    end_task(run, database, "silver.flights", "failed")
    place = {"dag_id": run.dag_id, "run_id": run.run_id, "task_id": "silver.flights"}
    XComModel.set(FAILED_KEY, misfit.to_xcom(), **place, session=database)
    database.commit()
    form = trigger_path(REBUILD_DAG_ID, table="silver.flights", task=f"flights/{RUN}/silver.flights")
    page = tables(server)
    assert f"in the run {RUN}: its table does not fit the spec" in page.words
    assert form in page.links
    offered = server.get(form, headers=login(server, "bob")).text
    assert f"<option value='flights/{RUN}/silver.flights'>failed at " in offered
    asked = {"table": "silver.flights", "why": "keys"}
    waiting = {"approve": Ended("awaiting_input", {}, seconds=(4,))}
    question = add_run(database, REBUILD_DAG_ID, "manual__r", waiting, conf=asked, kind=DagRunType.MANUAL)
    page = tables(server)
    assert form not in page.links, "nobody need ask twice"
    assert f"/dags/{REBUILD_DAG_ID}/runs/manual__r/tasks/approve/required_actions" in page.links
    database.delete(question)
    end_task(run, database, "silver.flights", "success")


def test_a_failed_task_of_a_hand_written_dag_is_found_by_the_table_that_it_works_on(
    server: TestClient, database: Session, mapped: DagRun
) -> None:
    render(mapped, database, "load.write", table="silver.planes", env_vars="{}")
    end_task(mapped, database, "load.write", "failed")
    page = tables(server)
    assert "run failed" in page.row("silver.planes")
    assert "/dags/mapped/runs/scheduled__of_march/tasks/load.write/mapped/0" in page.links
    assert "the task load.write [0] failed in the run scheduled__of_march" in page.words
    render(mapped, database, "load.gate", table="silver.weather", specs="/specs/of/another/tool")
    end_task(mapped, database, "load.gate", "failed")
    assert "run failed" not in tables(server).row("silver.weather"), "its spec is elsewhere"


def test_each_cause_leads_to_what_helps() -> None:
    failed = FailedTask("shop", "r1", "silver.orders_gate", -1, NOW)
    table = TableOverview(silver_spec(), failed=(failed,))
    item = Attention(table, Trouble.REFUSED, "refused", Remedy.OVERRIDE, fields={"version": 2})
    path = trigger_path(OVERRIDE_DAG_ID, table=table.table, task="shop/r1/silver.orders_gate", version=2)
    assert action_path(item, {}) == path
    table = TableOverview(bronze_spec())
    item = Attention(table, Trouble.GIVEN_UP, "given up", Remedy.DELIVER)
    assert action_path(item, {}) == table_path(table.table, "files")
    stale = Attention(table, Trouble.STALE, "stale", Remedy.RUN)
    for dags, path in ((["by_hand", "shop"], dag_path("shop")), (["by_hand"], dag_path("by_hand"))):
        assert action_path(stale, {"bronze.orders": dags}) == path, "the DAG that loads it, whatever its name"
    assert action_path(stale, {}) == table_path("bronze.orders", "versions")
