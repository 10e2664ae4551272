"""The page Backfill plan: real requests to Airflow's real API server, about real landing folders and a real ledger."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from fastapi.testclient import TestClient
from sqlalchemy import select, text
from sqlalchemy.orm import Session
from typer.testing import CliRunner

from lakehouse_airflow.intervals import interval_of
from lakehouse_airflow.pages import reader
from lakehouse_airflow.pages.reader import MOST_PLANS
from lakehouse_airflow.ui.links import backfill_form_path, backfill_plan_path, dag_path, run_page_path, table_path
from lakehouse_airflow.ui.run_notes import dates_of
from millrace.cli.app import app
from millrace.control.planning.run_plans import PlanKind
from tests.dags.pages.conftest import deny, deny_rows
from tests.support.airflow.logins import login
from tests.support.airflow.planned_lakehouse import DEFECT, SECRET, make_planned_lakehouse
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import Shown, show
from tests.support.airflow.shown_runs import add_dags
from tests.support.ledger.delta_tables import day

PAGE = backfill_plan_path("flights")
WINDOW = "?first=2013-01-01&last=2013-01-04"
KINDS = [kind.value for kind in PlanKind]
WAITING = """
from airflow.sdk import DAG
from lakehouse_airflow.assets import table_asset
serving = DAG("serving", schedule=[table_asset("gold.revenue_daily")], is_paused_upon_creation=False)
needed = table_asset("gold.revenue_daily") & table_asset("gold.elsewhere")
both = DAG("both", schedule=needed, is_paused_upon_creation=False)
other = DAG("other", schedule=[table_asset("gold.elsewhere")])
"""


@pytest.fixture(scope="module", autouse=True)
def planned_lakehouse(
    server: TestClient, database: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The DAG `flights` with a chain of tables: day 1 is loaded, day 2 is new, day 3 has not come, day 4 is broken.

    A table of another domain reads the chain, one reads Kafka, and a refused one quotes a hostile value. There are DAGs
    that wait for tables.
    """
    folder = tmp_path_factory.mktemp("planned")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_TABLES", str(folder / "tables"))
        patch.setenv("LAKEHOUSE_LANDING", str(folder / "landing"))
        make_planned_lakehouse(folder)
        add_dags(database, tmp_path_factory.mktemp("waiting"), WAITING)
        yield


def plan(server: TestClient, query: str = WINDOW) -> Shown:
    return show(server, PAGE + query)


def planned_rows(page: Shown) -> list[tuple[str, str, str]]:
    """Return (table, kind, message) of each table of each day."""
    return [(row[0], row[1], row[2]) for row in page.rows if len(row) > 2 and row[1] in KINDS]


@pytest.mark.parametrize(
    ("option", "query"),
    [((), ""), (("--table", "bronze.orders"), "&table=bronze.orders"), (("--reprocess",), "&reprocess=yes")],
)
def test_the_page_says_what_lakehouse_plan_says(server: TestClient, option: tuple[str, ...], query: str) -> None:
    command = ("plan", "--domain", "flights", "--interval", "2013-01-01", "--to", "2013-01-04", "--json", *option)
    answer = CliRunner().invoke(app, command)
    plans: list[dict[str, Any]] = json.loads(answer.stdout)
    assert {each["kind"] for each in plans} >= {PlanKind.WRITES, PlanKind.NOT_READY, PlanKind.FAILS}
    messages = [" ".join(each["message"].split()).removeprefix("nothing to do: ") for each in plans]
    assert planned_rows(plan(server, WINDOW + query)) == [
        (each["table"], each["kind"], message) for each, message in zip(plans, messages, strict=True)
    ]


def test_days_tables_time_and_what_is_to_be_done(server: TestClient) -> None:
    page = plan(server)
    for words in (
        "A run would load 1 landing file and write 3 tables on 2 of 4 days",
        "no landing folder",
        "orders/date={interval_start:%Y-%m-%d}/*.json",  # the pattern of the missing files
        "Kafka main: clicks",
        "airflow backfill create --dag-id flights --from-date 2013-01-01T00:00Z --to-date 2013-01-04T23:59Z",
        "lakehouse run --domain flights --interval 2013-01-01 --to 2013-01-04",
        "to do : bronze.bills, bronze.orders: The source has not delivered yet",
        "in about 1 second.",
        "No past batch tells the time of gold.revenue_daily",
    ):
        assert words in page.words
    assert page.words.count("The source has not delivered yet") == 1, "each text once"
    assert ["bronze.orders", "nothing to do", "0 new of 1 file", "7", "1 batch"] in page.rows
    assert {table_path("silver.orders"), dag_path("flights")} <= set(page.links)
    rows = [" ".join(row) for row in page.rows]
    assert "serving runs once for the events that have come by the time it starts" in rows
    assert "both waits also for gold.elsewhere, unless their events have come before" in rows
    assert any(row.startswith("gold.finance finance silver.orders never run") for row in rows)
    assert not [row for row in rows if row.startswith("other ")]


def test_the_runs_that_airflow_has_decide_which_behavior_runs_every_day_with_work(
    server: TestClient, database: Session
) -> None:
    facts = {"dag_id": "flights", "run_type": DagRunType.SCHEDULED, "triggered_by": DagRunTriggeredByType.TEST}
    states = {1: DagRunState.FAILED, 3: DagRunState.SUCCESS, 4: DagRunState.RUNNING}
    runs = [
        DagRun(
            run_id=f"run-{number}",
            logical_date=day(number).start,
            data_interval=(day(number).start, day(number).end),
            run_after=day(number).end,
            state=state,
            **facts,
        )
        for number, state in states.items()
    ]
    database.add_all(runs)
    database.commit()
    try:
        page = plan(server, f"{WINDOW}&table=gold.revenue_daily")
        rows = [" ".join(row) for row in page.rows]
        assert "Missing Runs 1" in rows
        assert "Missing and Errored Runs the least that runs every day with work 2" in rows
        assert any(row.startswith("All Runs 3 1 of the days has a run that has not ended") for row in rows)
        assert "--reprocess-behavior failed" in page.words
        assert "its scheduled or backfill run: failed" in page.words
    finally:
        for run in runs:
            database.delete(run)
        database.commit()


def test_a_day_whose_date_a_manual_run_took_is_named_and_a_backfill_that_takes_the_run_over_fails(
    server: TestClient, database: Session
) -> None:
    headers, date = login(server, "bob"), "2013-01-02T00:00:00Z"
    runs = "/api/v2/dags/flights/dagRuns"
    made = server.post(runs, headers=headers, json={"logical_date": date, "dag_run_id": "by_hand"}).json()
    assert made["data_interval_start"] == "2013-01-01T00:00:00Z", "Airflow gives it the interval before its date"
    try:
        assert "1 of 4 days has a run that was triggered by hand with the date of the day" in plan(server).words
        assert "2013-01-02 ( by_hand )" in plan(server).words
        shown = show(server, run_page_path("flights", "by_hand")).words
        assert "triggered by hand with the date of a scheduled run, 2013-01-02 00:00, so Airflow makes none" in shown
        server.patch(f"{runs}/by_hand", headers=headers, json={"state": "failed"}).raise_for_status()
        window = {"from_date": date, "to_date": date, "reprocess_behavior": "failed", "dag_id": "flights"}
        backfill = server.post("/api/v2/backfills", headers=headers, json=window | {"max_active_runs": 1})
        assert backfill.status_code == 200, backfill.text
        run = database.scalars(select(DagRun).where(DagRun.run_id == "by_hand")).one()
        database.refresh(run)
        assert run.run_type == DagRunType.BACKFILL_JOB
        with pytest.raises(AirflowFailException, match=r"interval that starts on 2013-01-01.*\nDelete this run"):
            interval_of(dates_of(run))
    finally:
        for made in ("backfill_dag_run", "task_instance", "dag_run", "backfill"):
            database.execute(text(f"DELETE FROM {made}"))
        database.commit()


def test_a_window_without_work_or_over_days_to_come_says_so_and_an_empty_form_plans_nothing(server: TestClient) -> None:
    to_come = plan(server, "?first=2100-01-01&last=2100-01-02").words
    assert "2 of the days are not over: a backfill leaves them out." in to_come
    for first, days in (("2013-01-01", "this day"), ("2012-12-30", "these 3 days")):
        idle = plan(server, f"?first={first}&last=2013-01-01&table=bronze.orders")
        assert f"A run of {days} would write nothing." in idle.words
    empty = plan(server, "")
    assert "Both are run. Nothing is written" in empty.words
    assert planned_rows(empty) == []
    assert empty.dates == {"first": "2013-01-01", "last": "2013-01-04"}, "the newest days with data, not the last week"


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("?first=2013-01-01&last=2013-04-03", "These are 93 days; a page plans at most 92."),
        ("?first=2013-01-02&last=2013-01-01", "To, 2013-01-01, is before From, 2013-01-02."),
        ("?first=2013-01-01", "To is '', which is no day"),
        (f"?first={EVIL}&last=1", "which is no day: write it as 2013-01-31."),
        ("?first=9999-12-31&last=9999-12-31", "9999-12-31 is the last day of the calendar"),
        (f"{WINDOW}&table={EVIL}", "This DAG loads no table"),
        (f"{WINDOW}&table=gold.finance", "This DAG loads no table 'gold.finance'."),
    ],
)
def test_a_window_that_cannot_be_planned_is_named_above_the_form(server: TestClient, query: str, problem: str) -> None:
    answer = server.get(PAGE + query, headers=login(server, "ann"))
    assert answer.status_code == 400
    assert "<script>" not in answer.text
    answer.status_code = 200
    assert problem in Shown(answer).words


def test_no_text_of_a_source_becomes_html(server: TestClient) -> None:
    for query in (WINDOW, f"{WINDOW}&framed={EVIL}&reprocess={EVIL}"):
        page = plan(server, query)
        assert "alert('x')" in page.words, "the hostile text is on the page"
        page.require_own_html()


def test_the_page_in_airflows_frame_has_no_link_that_would_open_in_it(server: TestClient) -> None:
    page = plan(server, f"{WINDOW}&framed=yes")
    assert planned_rows(page) == planned_rows(plan(server))
    form = backfill_form_path("flights", first="2013-01-01", last="2013-01-04", behavior="none", framed="yes")
    assert [link for link in page.links if not link.startswith("#") and ".css" not in link] == [form]


def test_other_dags_have_no_plan(server: TestClient) -> None:
    headers = login(server, "ann")
    answer = server.get(backfill_plan_path("table_maintenance"), headers=headers)
    assert (answer.status_code, "loads no tables" in answer.text) == (404, True)
    for unknown in ("nothing", "~", EVIL.replace("/", "")):
        answer = server.get(backfill_plan_path(unknown), headers=headers)
        assert (answer.status_code, answer.json()) == (404, {"detail": f"Airflow has no DAG {unknown}"})


def test_a_user_of_another_dag_has_no_plan_and_sees_no_dag_downstream_without_the_right_to_it(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(monkeypatch, None, "serving")
    names = [row[0] for row in plan(server).rows if row]
    assert ("both" in names, "serving" in names) == (True, False)
    deny(monkeypatch, None, "flights")
    assert server.get(PAGE + WINDOW, headers=login(server, "ann")).status_code == 403


def test_who_may_not_edit_the_dag_sees_no_value_of_a_row(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plan(server).words
    deny_rows(monkeypatch, "flights")
    page = plan(server)
    for secret in (SECRET, DEFECT):
        assert secret in whole
        assert secret.split(" <")[0] not in page.words
    assert ("bronze.bills", "refused", "its gate refuses the last batch") in planned_rows(page)
    assert "no landing folder" in page.words


def test_plans_that_wait_for_a_store_leave_room_for_the_other_pages(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_PAGE_WAIT_S", "0.1")
    headers = login(server, "ann")
    with ExitStack() as waiting:
        for _ in range(MOST_PLANS):
            waiting.enter_context(reader.lakehouse_to_plan())
        answer = server.get(PAGE + WINDOW, headers=headers)
        assert (answer.status_code, "Other plans are being made" in answer.text) == (503, True)
        assert server.get(PAGE, headers=headers).status_code == 200
    assert server.get(PAGE + WINDOW, headers=headers).status_code == 200


def test_a_folder_with_more_files_than_a_page_compares_is_named(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_PLAN_FILES", "5000")
    folder = Path(os.environ["LAKEHOUSE_LANDING"]) / "orders" / "date=2013-01-05"
    folder.mkdir()
    for number in range(5001):
        (folder / f"{number}.json").write_text("{}")
    page = plan(server, "?first=2013-01-05&last=2013-01-05&table=bronze.orders")
    assert "A run would load at least 5,000 landing files and write 1 table on 1 of 1 day" in page.words
    assert "A landing folder of bronze.orders has more files than a page compares: 5,000," in page.words
