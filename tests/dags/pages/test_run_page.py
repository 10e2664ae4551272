"""The page of a run: real requests to Airflow's real API server, about real runs and a real ledger."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from lakehouse_airflow.ui.links import (
    CHECKED_KEY,
    FAILED_KEY,
    OVERRIDE_DAG_ID,
    REPLAY_DAG_ID,
    lakehouse_path,
    run_page_path,
    run_path,
    table_path,
    trigger_path,
)
from millrace.contracts.job.findings import MALFORMED, RefusedRows, RescuedValues
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome
from tests.dags.pages.conftest import deny, deny_rows
from tests.support.airflow.logins import login
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.airflow.shown_page import Shown, show
from tests.support.airflow.shown_runs import SHOP_DAGS, Ended, add_dags, add_run

REASON, UNPARSED = f"rule: {EVIL}", f"{MALFORMED}: cannot be parsed as json"
SECONDS = {"plan": 0.5, "batch": 3.0, "gate": 1.0, "waited": 2.0, "total": 4.5}
ORDERS = TaskResult(
    outcome=Outcome.COMMITTED, message=f"12 rows {EVIL}", table="bronze.orders", batch_seq=2, version=2,
    rows={"read": 12, "applied": 8, "quarantined": 4}, seconds=SECONDS,
    refused=tuple(RefusedRows(reason=reason, action="quarantine", rows=2) for reason in (REASON, UNPARSED)),
    rescued=(RescuedValues(field="amount", type="int", rows=1), RescuedValues(field=EVIL, rows=2)),
)  # fmt: skip


def checked(table: str, version: int) -> dict[str, Any]:
    return {CHECKED_KEY: {"table": table, "version": version, "suite_hash": "5u17e"}}


LOADED = {"return_value": ORDERS.to_xcom()}
LOST = TaskResult(outcome=Outcome.CONFLICT, message=f"lost to {EVIL}", table="bronze.bills", seconds=SECONDS)
SHOP = {
    "bronze.orders.files": Ended("success", {}),
    "bronze.orders": Ended("success", LOADED, tries=2, seconds=(4, 14)),
    "bronze.orders_gate": Ended("success", checked("bronze.orders", 2)),
    "silver.orders": Ended("success", {"return_value": {**ORDERS.to_xcom(), "table": "silver.orders", "refused": []}}),
    "silver.orders_gate": Ended("failed", checked("silver.orders", 2)),
    "gold.revenue_daily": Ended("upstream_failed", {}),
    "bronze.bills": Ended("failed", {FAILED_KEY: LOST.to_xcom()}, tries=3),
    "bronze.bills_gate": Ended("upstream_failed", {}),
    "bronze.allowed.files": Ended("success", {}),
    "bronze.allowed": Ended("success", {"return_value": {**ORDERS.to_xcom(), "table": "bronze.allowed", "version": 1}}),
    "bronze.allowed_gate": Ended("success", checked("bronze.allowed", 1)),
    "bronze.stale.files": Ended("deferred", {}, seconds=(4,)),
    "bronze.unchecked": Ended("running", {}, seconds=(4,)),
}


@pytest.fixture(scope="module", autouse=True)
def runs(database: Session, shown_lakehouse: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run of each kind of DAG."""
    add_dags(database, tmp_path_factory.mktemp("dags"), SHOP_DAGS)
    add_run(database, "shop", "run-2", SHOP, state=DagRunState.FAILED)
    replay = TaskResult(
        outcome=Outcome.COMMITTED, message=EVIL, version=4, certified_version=4, rows={"read": 3, "applied": 3}
    )
    form = {"table": "bronze.orders", "dry_run": False, "reason": EVIL}
    manual: dict[str, Any] = {"kind": DagRunType.MANUAL}
    answer = {"chosen_options": ["Approve"], "params_input": {}, "responded_by_user": {"id": "7", "name": EVIL}}
    left = {
        "approve": Ended("success", {"return_value": answer}),
        "replay": Ended("success", {"return_value": replay.to_xcom()}),
    }
    add_run(database, REPLAY_DAG_ID, "manual__1", left, conf=form, **manual)
    add_run(database, REPLAY_DAG_ID, "manual__2", left, conf={**form, "table": EVIL}, **manual)
    asked = {"approve": Ended("awaiting_input", {}, seconds=(4,))}
    add_run(database, REPLAY_DAG_ID, "manual__4", asked, conf=form, state=DagRunState.RUNNING, **manual)
    tried = TaskResult(outcome=Outcome.NO_OP, message="1 row would be discarded")
    only_tried = {"replay": Ended("success", {"return_value": tried.to_xcom()})}
    add_run(database, REPLAY_DAG_ID, "manual__3", only_tried, conf={**form, "dry_run": True}, **manual)
    dry = {"dry_run": Ended("success", {"return_value": {"subject": EVIL, "body": EVIL}})}
    add_run(database, "table_rebuild", "manual__1", dry, conf={"table": "silver.orders"}, **manual)
    joined = TaskResult(outcome=Outcome.COMMITTED, message="bronze.weather: joined 9 files", version=7)
    optimized = {"maintain": Ended("success", {"return_value": joined.of_table("bronze.weather").to_xcom()})}
    add_run(database, "table_maintenance", "scheduled__1", optimized)
    earlier = {
        "silver.orders_gate": Ended("failed", checked("silver.orders", 7), seconds=(-4000, -3990)),
        "silver.orders": Ended("success", {}, seconds=(-4010, -4000)),
    }
    add_run(database, "shop", "before", earlier, state=DagRunState.FAILED, **manual)
    add_run(database, "by_hand", "run-1", {"gate": Ended("success", {})})
    add_run(database, "mails", "manual__1", {"send": Ended("failed", {})}, state=DagRunState.FAILED, **manual)


def of_run(server: TestClient, dag_id: str = "shop", run_id: str = "run-2", query: str = "") -> Shown:
    return show(server, run_page_path(dag_id, run_id) + query)


def row(page: Shown, table: str) -> str:
    """Return the row of a table among the tables of the run."""
    return next(" ".join(each) for each in page.rows if each[:1] == [table])


def test_each_table_says_how_the_run_ended_for_it_with_its_rows_and_its_time(server: TestClient) -> None:
    page = of_run(server)
    assert (
        "9 tables: 1 refused, 1 failed, 1 did not run, 1 waits, 1 running, 2 not started, 1 certified by hand"
        in page.words
    )
    orders = row(page, "bronze.orders")
    assert "12 read: 12 applied" in orders, "the ledger knows better than a task that reports it a second time"
    assert "certified" in orders
    assert "1 row has a value of amount that is no int: null there, kept in _rescued" in orders
    assert "write: 2 tries" in orders
    assert "planning 0.5 s, waiting for other writers 2.0 s, Spark 1.0 s, gate" in orders
    assert "waiting for files 6.0 s" in orders
    assert f"version 1 certified by hand let pass by {EVIL} at " in row(page, "bronze.allowed")
    silver = row(page, "silver.orders")
    assert "refused" in silver
    assert "expect_column_max_to_be_between(amount, max_value=9)" in silver
    assert "waits for its landing files in stale/date=2013-01-02" in row(page, "bronze.stale")
    assert "bronze.unchecked works" in row(page, "bronze.unchecked")
    failed = page.words.partition("Failed tasks ")[2].partition(" Tables ")[0]
    assert ("silver.orders gate" in failed, "silver.orders_gate" in failed) == (True, False), "as Airflow shows it"
    assert "of an earlier table" not in page.words


def test_what_to_do_next_leads_to_filled_in_forms_and_failed_tasks_to_their_logs(server: TestClient) -> None:
    links = of_run(server).links
    task = "shop/run-2/silver.orders_gate"
    override = trigger_path(OVERRIDE_DAG_ID, table="silver.orders", version=2, task=task)
    replay = trigger_path(REPLAY_DAG_ID, table="bronze.orders", reason=REASON)
    assert {override, replay, f"{run_path('shop', 'run-2')}/tasks/bronze.bills"} <= set(links)
    assert links.index(override) < links.index(table_path("bronze.orders"), links.index(override))
    for reason in ("rule", "malformed"):
        assert any(link.startswith(f"{table_path('bronze.orders', 'quarantine')}?reason={reason}") for link in links)
    assert trigger_path(REPLAY_DAG_ID, table="bronze.orders", reason=UNPARSED) not in links, "it reads none again"
    assert f"{run_path('mails', 'manual__1')}/tasks/send" in of_run(server, "mails", "manual__1").links
    [again] = [link for link in of_run(server, REPLAY_DAG_ID, "manual__3").links if "dry_run" in link]
    assert again == trigger_path(REPLAY_DAG_ID, table="bronze.orders", dry_run=False, reason=EVIL)
    asking = of_run(server, REPLAY_DAG_ID, "manual__4")
    assert "What to do next approve waits for the answer of a person: Answer Tables" in asking.words
    assert f"{run_path(REPLAY_DAG_ID, 'manual__4')}/tasks/approve/required_actions" in asking.links


def test_a_run_of_before_its_tables_were_created_leaves_nothing_to_do(server: TestClient) -> None:
    page = of_run(server, run_id="before")
    assert "Nothing: each table of which a task failed was created anew after this run." in page.words
    silver = row(page, "silver.orders")
    assert "refused" in silver
    assert "version 7 of an earlier table: this one was created 1 hour ago" in silver
    assert not [link for link in page.links if OVERRIDE_DAG_ID in link or REPLAY_DAG_ID in link]


@pytest.mark.parametrize(
    ("dag_id", "run_id", "sentence"),
    [
        (REPLAY_DAG_ID, "manual__1", "1 table: 1 certified."),
        (REPLAY_DAG_ID, "manual__2", EVIL),
        ("table_rebuild", "manual__1", "1 table: 1 not started."),
        (REPLAY_DAG_ID, "manual__3", "It was a dry run, which changes nothing."),
        ("table_maintenance", "scheduled__1", "bronze.weather: joined 9 files"),
        ("mails", "manual__1", "This run has no task of Millrace."),
        ("shop", "run-2", "Data of 2013-01-02 (UTC)"),
    ],
)
def test_each_kind_of_run_has_a_page_without_foreign_html(
    server: TestClient, dag_id: str, run_id: str, sentence: str
) -> None:
    page = of_run(server, dag_id, run_id)
    page.require_own_html()
    assert sentence in page.words
    for query in ("?frame=1", "?page_no=2", "?page_no=-1"):
        of_run(server, dag_id, run_id, query).require_own_html()


def test_the_tasks_of_an_approval_have_their_own_names(server: TestClient) -> None:
    orders = row(of_run(server, REPLAY_DAG_ID, "manual__1"), "bronze.orders")
    assert "approve" in orders.split()
    assert f"approve: Approve by {EVIL}" in orders
    assert "approval" not in orders


def test_the_tab_of_airflow_has_no_second_head_and_no_link_to_the_run_around_it(server: TestClient) -> None:
    alone, framed = of_run(server), of_run(server, query="?frame=1")
    around, sentence = run_path("shop", "run-2"), "A link opens within this frame"
    for page, is_alone in ((alone, True), (framed, False)):
        assert ("header" in page.tags, around in page.links, sentence in page.words) == (
            is_alone,
            is_alone,
            not is_alone,
        )


def test_a_lakehouse_that_cannot_be_read_leaves_what_airflow_knows(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_TABLES", "/nowhere")
    page = of_run(server)
    assert "no folder of table specs at /nowhere" in page.words
    assert "12 read: 8 applied, 4 quarantined" in row(page, "bronze.orders")
    assert "1 refused, 1 failed" in page.words


def test_only_runs_that_airflow_has_are_linked_also_of_a_dag_by_hand(server: TestClient) -> None:
    of_domain, by_hand = ({run_path(*run), run_page_path(*run)} for run in (("shop", "run-2"), ("by_hand", "run-1")))
    versions = show(server, table_path("bronze.orders", "versions"))
    runs = [" ".join(each).partition("batch ")[2] for each in versions.rows if each and each[0].isdecimal()]
    assert [run.partition(" 5")[0] for run in runs[2:]] == ["1, run-1 (not found in Airflow)"]
    assert [("what it did" in run, "(not found in Airflow)" in run) for run in runs] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert linked_runs(versions) == of_domain
    tables = show(server, lakehouse_path("tables"))
    assert "less than a minute ago (not found in Airflow)" in tables.row("bronze.orders")
    assert "less than a minute ago , what it did replay of" in tables.row("silver.orders"), "rows waited for this run"
    assert "less than a minute ago , what it did" in tables.row("bronze.bills")
    assert linked_runs(tables) == of_domain | by_hand
    assert linked_runs(show(server, table_path("silver.orders"))) == of_domain


def linked_runs(page: Shown) -> set[str]:
    return {link for link in page.links if "/runs/" in link and "/tasks/" not in link}


def test_there_is_no_page_of_another_run(server: TestClient) -> None:
    for dag_id, run_id in (("shop", "nothing"), ("nothing", "run-2"), ("shop", "../../etc")):
        assert server.get(run_page_path(dag_id, run_id), headers=login(server, "ann")).status_code == 404


def test_a_user_of_another_dag_reads_no_page_of_this_one(server: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(monkeypatch, DagAccessEntity.RUN, "shop")
    assert server.get(run_page_path("shop", "run-2"), headers=login(server, "ann")).status_code == 403
    assert server.get(run_page_path("mails", "manual__1"), headers=login(server, "ann")).status_code == 200


@pytest.mark.parametrize("user", ["bob", "dan"])
def test_values_of_rows_need_the_right_to_edit_the_dag(
    server: TestClient, monkeypatch: pytest.MonkeyPatch, user: str
) -> None:
    path, values = run_page_path("shop", "run-2"), (f"observed {EVIL}", f"lost to {EVIL}", f"12 rows {EVIL}")
    whole = show(server, path, user).words
    assert [value for value in values if value not in whole] == []
    deny_rows(monkeypatch, "shop")
    counts = show(server, path, user).words
    assert [value for value in values if value in counts] == []
    assert "12 read" in counts
