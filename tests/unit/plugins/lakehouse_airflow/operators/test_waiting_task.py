"""Tasks that wait: for landing files in the triggerer, or for an approval, after which Airflow's API clears them."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import quote

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException, TaskDeferred

from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.operators.waiting_task import RunWaitingTaskOperator, WaitingTask, waiting_task
from lakehouse_airflow.triggers.landing import LandingTrigger
from lakehouse_airflow.ui.links import task_path
from millrace.clock import utc_now
from millrace.errors import NotReadyError, StorageError
from tests.support.documents.specs import bronze_document, write_specs
from tests.unit.plugins.lakehouse_airflow.operators.conftest import COMMITTED, House

TASK = "shop/manual__2013-01-05T00:00:00+00:00/silver.orders_gate"
PATH_OF_TASK = (
    f"/api/v2/dags/shop/dagRuns/{quote('manual__2013-01-05T00:00:00+00:00')}/taskInstances/silver.orders_gate"
)
PASSWORD = "a-secret"


def context_of(task: str | None, table: str = "silver.orders") -> dict[str, Any]:
    return {"params": {"task": task, "table": table}}


def run_again(task: str | None, table: str = "silver.orders") -> None:
    RunWaitingTaskOperator(task_id="run_again").execute(context_of(task, table))


class Api(BaseHTTPRequestHandler):
    """An API in which one user may log in; it has one task, and remembers what was cleared."""

    cleared: ClassVar[list[tuple[str, dict[str, Any]]]] = []
    state: ClassVar[str] = "failed"

    def do_GET(self) -> None:
        """Answer with the task."""
        is_task = self.path in (PATH_OF_TASK, f"{PATH_OF_TASK}/2") and self.headers["Authorization"] == "Bearer t0ken"
        self._answer(200 if is_task else 404, {"state": self.state, "rendered_fields": {"table": "silver.orders"}})

    def do_POST(self) -> None:
        """Log in, or clear a task."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            is_user = body == {"username": "ann", "password": PASSWORD}
            self._answer(201 if is_user else 401, {"access_token": "t0ken"})
        else:
            self.cleared.append((self.path, body))
            self._answer(200, {})

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(document).encode())


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The port of the API to which the connection `airflow_api` leads."""
    monkeypatch.setattr(Api, "cleared", [])
    with HTTPServer(("127.0.0.1", 0), Api) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        connect(monkeypatch, server.server_port)
        yield server.server_port
        server.shutdown()
        thread.join()


def connect(monkeypatch: pytest.MonkeyPatch, port: int, password: str = PASSWORD) -> None:
    """Create the connection to an API at a port of this machine."""
    connection = {"conn_type": "http", "host": f"http://127.0.0.1:{port}", "login": "ann", "password": password}
    monkeypatch.setenv("AIRFLOW_CONN_AIRFLOW_API", json.dumps(connection))


def test_the_form_names_dag_run_and_task_or_nothing() -> None:
    assert waiting_task(context_of(f" {TASK} ")) == WaitingTask(*TASK.split("/"))
    assert waiting_task(context_of(f"{TASK}/2")) == WaitingTask(*TASK.split("/"), 2)
    assert waiting_task(context_of("")) is waiting_task(context_of(None)) is None
    for text in ("silver.orders_gate", "shop//silver.orders_gate", "a/b/c/d"):
        with pytest.raises(AirflowFailException, match="write it as <dag>/<run>/<task>"):
            waiting_task(context_of(text))


@pytest.mark.usefixtures("port")
def test_the_task_is_cleared_with_those_after_it_and_of_a_mapped_task_only_the_instance_that_waits() -> None:
    run_again(TASK)
    run_again(f"{TASK}/2")
    [(path, body), (_, of_mapped)] = Api.cleared
    assert path == "/api/v2/dags/shop/clearTaskInstances"
    assert (body["dag_run_id"], body["task_ids"]) == (TASK.split("/")[1], ["silver.orders_gate"])
    assert (body["include_downstream"], body["dry_run"]) == (True, False)
    assert of_mapped["task_ids"] == [["silver.orders_gate", 2]]
    assert task_path(WaitingTask("shop", "r1", "silver.orders_gate", 2)).endswith("/tasks/silver.orders_gate/mapped/2")


@pytest.mark.usefixtures("port")
@pytest.mark.parametrize("state", ["success", None])
def test_a_task_that_somebody_has_cleared_is_left_alone(monkeypatch: pytest.MonkeyPatch, state: str | None) -> None:
    monkeypatch.setattr(Api, "state", state)
    run_again(TASK)
    assert Api.cleared == []


@pytest.mark.usefixtures("port")
def test_no_task_of_another_table_is_cleared() -> None:
    with pytest.raises(AirflowFailException, match=r"is no task of silver\.bills"):
        run_again(TASK, "silver.bills")
    with pytest.raises(AirflowException, match="404"):
        run_again(TASK.replace("shop", "bank"))
    assert Api.cleared == []


def test_without_a_connection_or_a_name_the_person_is_told_to_clear_it() -> None:
    with pytest.raises(AirflowSkipException, match=f"Clear {TASK.replace('+', '.')} yourself"):
        run_again(TASK)
    with pytest.raises(AirflowSkipException, match="names no waiting task"):
        run_again(None)


@pytest.mark.parametrize("is_running", [True, False])
def test_an_api_that_refuses_or_does_not_answer_fails_the_task_without_the_password(
    port: int, monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        connect(monkeypatch, port if is_running else closed.getsockname()[1], "wrong-secret")
        with pytest.raises(AirflowException, match="Clear it by hand") as failed:
            run_again(TASK)
    assert "secret" not in str(failed.value)
    assert Api.cleared == []


MakeRun = Callable[..., dict[str, Any]]

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
