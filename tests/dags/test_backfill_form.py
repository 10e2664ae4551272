"""The form of a backfill with the dates of a plan: real requests to Airflow's real API server."""

from __future__ import annotations

import pytest
from airflow.models.backfill import Backfill, BackfillDagRun
from airflow.models.dagrun import DagRun
from fastapi.testclient import TestClient
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from lakehouse_airflow.ui.links import backfill_form_path, backfills_path
from tests.dags.test_trigger_form import EVIL, Form
from tests.support.airflow.logins import login

PAGE = backfill_form_path("flights")
FORM = {"first": "2013-01-04", "last": "2013-01-06", "behavior": "none", "at_once": "2", "reprocess": "yes"}
BACKFILLS = select(Backfill).where(Backfill.dag_id == "flights")

pytestmark = pytest.mark.usefixtures("database")


def test_a_link_opens_the_form_with_the_dates_filled_in(server: TestClient) -> None:
    link = backfill_form_path("flights", first="2013-01-04", last="2013-01-06", reprocess="yes", behavior="completed")
    page = server.get(link, headers=login(server, "ann"))
    assert page.status_code == 200
    form = Form(page)
    assert form.action == PAGE
    assert (form.values["first"], form.values["last"], form.values["at_once"]) == ("2013-01-04", "2013-01-06", "1")
    assert 'value="completed" selected' in page.text
    assert "checked" in page.text
    assert "script" not in form.tags
    assert "unsafe" not in page.headers["content-security-policy"]


def test_hostile_values_stay_text(server: TestClient) -> None:
    page = server.get(backfill_form_path("flights", **dict.fromkeys(FORM, EVIL)), headers=login(server, "ann"))
    assert (page.status_code, "script" in Form(page).tags) == (200, False)


@pytest.mark.parametrize(
    ("framed", "leads_to"), [("", backfills_path("flights")), ("yes", f"{PAGE}?framed=yes&created=")]
)
def test_sending_the_form_creates_the_backfill_in_the_name_of_the_user(
    server: TestClient, database: Session, framed: str, leads_to: str
) -> None:
    answer = server.post(PAGE, data={**FORM, "framed": framed}, headers=login(server, "bob"))
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(leads_to)
    database.expire_all()
    backfill = database.scalars(BACKFILLS).one()
    try:
        assert (f"{backfill.from_date:%Y-%m-%d %H:%M}", f"{backfill.to_date:%Y-%m-%d}") == (
            "2013-01-04 00:00",
            "2013-01-06",
        )
        assert (backfill.max_active_runs, backfill.dag_run_conf) == (2, {"reprocess": True})
        assert backfill.triggering_user_name == "bob"
        again = server.post(PAGE, data=FORM, headers=login(server, "bob"))
        assert (again.status_code, "already a running backfill" in again.text) == (400, True)
    finally:
        database.rollback()
        ids = database.scalars(select(BackfillDagRun.dag_run_id)).all()
        runs = database.scalars(select(DagRun).where(DagRun.id.in_(ids))).all()
        assert [f"{run.logical_date:%Y-%m-%d}" for run in runs] == ["2013-01-04", "2013-01-05", "2013-01-06"]
        database.execute(delete(BackfillDagRun))
        for gone in (*runs, backfill):
            database.delete(gone)
        database.commit()


@pytest.mark.parametrize("wrong", [{"first": "soon"}, {"at_once": "x"}, {"behavior": EVIL}, {"last": "2013-01-01"}])
def test_a_refused_value_is_named_above_the_form(server: TestClient, database: Session, wrong: dict[str, str]) -> None:
    answer = server.post(PAGE, data={**FORM, **wrong}, headers=login(server, "bob"))
    assert (answer.status_code, 'role="alert"' in answer.text, "<script>" in answer.text) == (400, True, False)
    assert database.scalars(BACKFILLS).all() == []


@pytest.mark.parametrize(
    ("user", "headers"),
    [("ann", {}), ("eve", {}), ("bob", {"Sec-Fetch-Site": "cross-site"}), ("bob", {"Origin": "null"})],
)
def test_who_may_not_and_what_another_site_sends_creates_nothing(
    server: TestClient, database: Session, user: str, headers: dict[str, str]
) -> None:
    answer = server.post(PAGE, data=FORM, headers={**login(server, user), **headers})
    assert answer.status_code == 403
    assert database.scalars(BACKFILLS).all() == []


def test_an_unknown_dag_has_no_form(server: TestClient) -> None:
    assert server.get(backfill_form_path("nothing"), headers=login(server, "ann")).status_code == 404
