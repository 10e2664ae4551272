"""A writer plans in the worker, runs its job as a real process, and ends as the job's report says."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization

from lakehouse_airflow.assets import MAY_PROPOSE_COLUMNS, PROPOSED_COLUMNS
from lakehouse_airflow.hooks import store_access
from lakehouse_airflow.operators.table_write import TableWriteOperator
from lakehouse_airflow.retries import DEFAULT_POLICY, RETRIES
from lakehouse_airflow.ui.links import FAILED_KEY
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.errors import ConflictError, DiskFullError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import write_spec
from tests.unit.plugins.lakehouse_airflow.operators.conftest import COMMITTED, DAY, House, driver_log, writer

MakeRun = Callable[..., dict[str, Any]]


@pytest.mark.usefixtures("warm_server")
def test_a_committed_batch_ends_in_a_small_result_and_its_report_says_where_the_time_went(
    house: House, run_of: MakeRun
) -> None:
    house.deliver()
    house.job(COMMITTED.replace("version=1,", "version=1, timings_s={'batch': 0.002, 'total': 0.004},", 1))
    run = run_of()
    run["ti"].start_date = datetime.now(UTC) - timedelta(seconds=3)
    result = writer().execute(run)
    assert result.pop("seconds").keys() == {"start", "plan", "driver", "batch", "total"}
    assert result == {
        "outcome": "committed",
        "message": "loaded 1 of 1 files",
        "table": "bronze.orders",
        "batch_seq": 1,
        "version": 1,
        "certified_version": 1,
        "rows": {"read": 1, "applied": 1, "inserted": 1},
        "refused": [],
        "rescued": [],
        "is_misfit": False,
    }
    [file] = (house.root / "_millrace" / "reports").rglob("*.json")
    spans = JobReport.load(file).timings_s
    assert list(spans) == ["start", "plan", "driver", "batch", "total"]
    assert 3 <= spans["start"] < 60
    assert spans["plan"] > 0 < spans["driver"]
    assert (spans["batch"], spans["total"]) == (0.002, 0.004)


@pytest.mark.usefixtures("warm_server")
def test_the_jobs_command_line_has_everything_but_secrets(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job(
        "from os import environ as e; print(e['SPARK_REMOTE'], e['SPARK_CONNECT_AUTHENTICATE_TOKEN'], e['FEED'])"
        + COMMITTED
    )
    task = writer(env_vars={"FEED": "night"})
    task.execute(run_of(reprocess=True))
    assert task.application == str(house.folder / "jobs/bronze_ingest.py")
    args = JobArgs.from_argv(task.application_args)
    place = "shop/scheduled__2013-01-06T00_00_00+00_00/bronze.orders/1"
    assert args == JobArgs(
        table="bronze.orders",
        interval_start=DAY.start,
        interval_end=DAY.end,
        run_id="scheduled__2013-01-06T00:00:00+00:00",
        root=house.root,
        landing=house.landing,
        tables=house.folder / "tables",
        report=house.root / f"_millrace/reports/{place}.json",
        reprocess=True,
    )
    assert "a-secret-token" not in str(task.application_args)
    log = (house.root / f"_millrace/driver_logs/{place}.log").read_text()
    assert log.startswith("sc://127.0.0.1:")
    assert log.endswith(" night\n")


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize("is_first", [True, False], ids=["the first task of its process", "a later one"])
def test_the_driver_is_a_fork_as_long_as_no_task_of_the_process_has_used_a_table(
    house: House, run_of: MakeRun, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    monkeypatch.setattr(store_access, "_prepared", set() if is_first else {os.getpid()})
    house.deliver()
    house.job("print('airflow' in sys.modules)" + COMMITTED)
    assert writer().execute(run_of())["outcome"] == "committed"
    assert driver_log(house) == f"{is_first}\n"


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize(
    ("outcome", "error"),
    [("CONFLICT", ConflictError), ("FAILED", AirflowException)],
)
def test_the_report_decides_the_type_of_the_error(
    house: House, run_of: MakeRun, outcome: str, error: type[Exception]
) -> None:
    house.deliver()
    house.job(f"report(Outcome.{outcome}, 'what to do next'); sys.exit(1)")
    with pytest.raises(error) as raised:
        writer().execute(run_of())
    assert type(raised.value) is error
    assert str(raised.value).splitlines()[0] == "what to do next"
    assert raised.value.__suppress_context__


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize(
    ("ending", "form"),
    [
        ("Outcome.DELETES_REFUSED, 'stop'", "delete_approval?table=bronze.orders&version=7"),
        ("Outcome.BAD_INPUT, 'stop', error_class='MisfitError'", "table_rebuild?table=bronze.orders"),
        ("Outcome.BAD_INPUT, 'stop', error_class='BadInputError'", ""),
    ],
)
def test_a_task_that_stops_until_a_person_decides_links_to_the_form_for_that(
    house: House, run_of: MakeRun, ending: str, form: str
) -> None:
    house.deliver()
    house.job(f"report({ending})")
    deletes = Deletes("bronze.orders", "id", DAY.start, "source", "source id", 7, keys=480, of_keys=500)
    DeleteRecords(LakehousePaths(house.root)).record_asked(deletes, "run")
    task, key = writer(), SimpleNamespace(dag_id="shop", run_id="manual__1", task_id="bronze.orders", map_index=-1)

    def links() -> list[str]:
        return [path for link in task.operator_extra_links if (path := link.get_link(task, ti_key=key))]

    pages = ["/lakehouse/tables/bronze.orders", "/lakehouse/runs/shop/manual__1"]
    assert links() == pages
    with pytest.raises(AirflowFailException, match="stop"):
        task.execute(run := run_of())
    assert run["ti"].pushed[FAILED_KEY]["message"] == "stop", "for the page of the run"
    assert links() == pages + ([f"/lakehouse/trigger/{form}&task=shop%2Fmanual__1%2Fbronze.orders"] if form else [])


@pytest.mark.usefixtures("warm_server")
def test_each_of_several_mapped_tasks_has_files_of_its_own(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job("print(args.report); " + COMMITTED.lstrip())
    for map_index in (0, -1):
        writer().execute(run_of(map_index=map_index))
    run = house.root / "_millrace/reports/shop/scheduled__2013-01-06T00_00_00+00_00"
    places = [str(file.relative_to(run)) for file in sorted(run.rglob("*.json"))]
    assert places == ["bronze.orders/0/1.json", "bronze.orders/1.json"]
    assert len(list((house.root / "_millrace/driver_logs").rglob("*.log"))) == 2


def test_a_wrong_spec_fails_its_task_at_once_with_the_problem(house: House, run_of: MakeRun) -> None:
    file = write_spec(house.folder / "tables", "bronze/shop/orders.yaml", "table: bronze.orders\nkeyz: [order_id]\n")
    with pytest.raises(AirflowFailException, match=f"{file}:2: keyz: unknown key"):
        writer().execute(run_of())
    assert not (house.root / "_millrace" / "driver_logs").exists()


def test_outside_the_data_a_scheduled_run_succeeds_and_a_manual_one_fails(house: House, run_of: MakeRun) -> None:
    task = writer(last_day=date(2013, 1, 4))
    result = task.execute(run_of())
    assert (result["outcome"], result["version"]) == ("no_op", None)
    assert result["message"].startswith("no data after 2013-01-04")
    with pytest.raises(AirflowFailException, match="no data after 2013-01-04"):
        task.execute(run_of(run_type="manual", day="2013-01-05"))


def test_before_it_starts_there_is_nothing_to_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(tmp_path / "missing"))
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    task = writer()
    assert (task.table, task.job, task.hook) == ("bronze.orders", Job.BRONZE_INGEST, None)
    task.on_kill()


def test_a_writer_retries_by_the_type_of_the_error_wherever_it_is_used() -> None:
    with DAG("by_hand", schedule=None, default_args={"retry_delay": timedelta(seconds=7)}):
        alone = writer()
        mapped = TableWriteOperator.partial(task_id="mapped").expand(table=["bronze.orders", "silver.orders"])
        once = writer(task_id="once", retries=1, retry_policy=None)
    for task in (alone, mapped):
        assert (task.retries, task.retry_policy, task.retry_delay) == (RETRIES, DEFAULT_POLICY, timedelta(seconds=7))
        assert DagSerialization.to_dict(task.dag)
    assert (once.retries, once.retry_policy) == (1, None)
    assert RETRIES > 0


@pytest.mark.usefixtures("warm_server")
@pytest.mark.parametrize("state", [ColumnState.PROPOSED, ColumnState.ASKED])
def test_a_new_field_that_nobody_was_asked_about_triggers_the_dag_that_asks(
    house: House, run_of: MakeRun, state: ColumnState
) -> None:
    house.deliver()
    house.job(COMMITTED)
    columns = NewColumns(LakehousePaths(house.root))
    columns.record(state, "bronze.orders", ["colour"], run_id="monday")
    added: list[tuple[Any, Any]] = []
    event = SimpleNamespace(add=lambda asset, extra: added.append((asset, extra)))
    asking = writer(outlets=[MAY_PROPOSE_COLUMNS])

    asking.execute(run_of(events={MAY_PROPOSE_COLUMNS: event}))

    is_new = state is ColumnState.PROPOSED
    assert added == ([(PROPOSED_COLUMNS, {"table": "bronze.orders", "columns": ["colour"]})] if is_new else [])


@pytest.mark.usefixtures("warm_server")
def test_a_driver_without_a_report_names_its_log_and_its_last_lines_are_shown(
    house: House, run_of: MakeRun, capfd: pytest.CaptureFixture[str]
) -> None:
    house.deliver()
    house.job("print('about to die'); sys.exit(9)")
    task = writer()
    with pytest.raises(
        AirflowException, match=r"^bronze.orders: the driver of bronze_ingest ended without a report"
    ) as raised:
        task.execute(run_of())
    assert "driver_logs/shop/" in str(raised.value)
    assert "(exit code 9)" in str(raised.value)
    assert driver_log(house) == "about to die\n"
    assert "The last lines of the driver:\nabout to die" in capfd.readouterr().out


@pytest.mark.usefixtures("warm_server")
def test_a_driver_that_could_not_write_its_report_says_which_disk_is_full(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job("sys.exit(16)")
    with pytest.raises(DiskFullError, match=r"^bronze.orders: the disk is full: no space left for .*_millrace/reports"):
        writer().execute(run_of())


@pytest.mark.usefixtures("warm_server")
def test_a_report_of_an_earlier_run_does_not_count(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job(COMMITTED)
    writer().execute(run_of())
    house.job("sys.exit(0)")
    with pytest.raises(AirflowException, match="ended without a report"):
        writer().execute(run_of())


@pytest.mark.usefixtures("warm_server")
def test_a_job_that_reported_its_commit_and_then_crashed_has_committed(house: House, run_of: MakeRun) -> None:
    house.deliver()
    house.job(COMMITTED + "sys.exit(134)")
    assert writer().execute(run_of())["outcome"] == "committed"
