"""The forms that a link fills in, of a run and of a backfill: real requests to Airflow's real API server."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from airflow.models.backfill import Backfill, BackfillDagRun
from airflow.models.dagrun import DagRun
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from lakehouse_airflow.operators.waiting_task import WaitingTask
from lakehouse_airflow.ui.links import (
    REPLAY_DAG_ID,
    URL_PREFIX,
    backfill_form_path,
    backfills_path,
    form_path,
    lakehouse_path,
    table_path,
)
from tests.support.airflow.logins import login
from tests.support.airflow.shown_lakehouse import EVIL

TASK = WaitingTask("flights", "manual__2013-01-05T00:00:00+00:00", "silver.weather_gate")
LINK = form_path("gate_override", TASK, "silver.weather", version=7)
PAGE = f"{URL_PREFIX}/trigger/gate_override"
FORM = {"table": "silver.weather", "version": "7", "reason": f"a holiday {EVIL}", "task": str(TASK)}
RUNS = select(DagRun).where(DagRun.dag_id == "gate_override")

BACKFILL_PAGE = backfill_form_path("flights")
BACKFILL = {"first": "2013-01-04", "last": "2013-01-06", "behavior": "none", "at_once": "2", "reprocess": "yes"}
BACKFILLS = select(Backfill).where(Backfill.dag_id == "flights")

pytestmark = pytest.mark.usefixtures("database")


class Form(HTMLParser):
    """The form of a page: where it is sent to, and the value of each field."""

    def __init__(self, page: Response) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self.action = ""
        self.tags: list[str] = []
        self.links: list[str] = []
        self._field = ""
        self._is_chosen = False
        self.feed(page.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.links += [named["href"]] if tag == "a" else []
        self.action = named["action"] if tag == "form" else self.action
        self._is_chosen = tag == "textarea" or (tag == "option" and "selected" in named)
        if "name" in named and tag != "meta":
            self._field = named["name"]
            self.values[self._field] = named.get("value", "")

    def handle_data(self, data: str) -> None:
        if self._is_chosen:
            self.values[self._field] = data
            self._is_chosen = False


def test_a_link_opens_the_form_with_all_but_the_reason_filled_in(server: TestClient) -> None:
    headers, lakehouse, table = login(server, "bob"), lakehouse_path("tables"), table_path("silver.weather")
    page = server.get(LINK, headers=headers)
    assert page.status_code == 200
    form = Form(page)
    assert form.values == {**FORM, "reason": ""}
    assert form.action == LINK.partition("?")[0], "it is sent to this very page"
    assert form.links == ["#content", "/", lakehouse, table, table]
    assert "script" not in form.tags
    assert "form-action 'self'" in page.headers["content-security-policy"]
    for link, links in ((PAGE, [lakehouse]), (f"{PAGE}?table=silver.unknown", [table_path("silver.unknown")] * 2)):
        form = Form(server.get(link, headers=headers))
        assert (form.values["table"], form.links) == ("", ["#content", "/", lakehouse, *links]), "none is chosen"


def test_sending_the_form_starts_a_run_in_the_name_of_the_user_and_leads_to_it(
    server: TestClient, database: Session
) -> None:
    answer = server.post(PAGE, data=FORM, headers=login(server, "bob"))
    assert answer.status_code == 303, answer.text
    database.expire_all()
    run = database.scalars(RUNS).one()
    place = run.run_id.replace(":", "%3A").replace("+", "%2B")
    assert answer.headers["location"] == f"/dags/gate_override/runs/{place}"
    assert run.conf == {**FORM, "version": 7}
    assert run.triggering_user_name == "bob"


@pytest.mark.parametrize("version", ["--5", "9" * 5000])
def test_a_version_that_is_no_number_comes_back_with_the_reason(server: TestClient, version: str) -> None:
    form = {"table": "silver.flights", "version": version, "reason": "it is fine"}
    answer = server.post(PAGE, data=form, headers=login(server, "bob"))
    assert (answer.status_code, Form(answer).values["version"]) == (400, version)


def test_a_map_of_values_reaches_the_run_as_a_map_and_an_empty_box_as_no(server: TestClient, database: Session) -> None:
    page, headers = f"{URL_PREFIX}/trigger/{REPLAY_DAG_ID}", login(server, "bob")
    form = {"table": "silver.flights", "action": "replay rows", "set_how": "map", "set_values": '{"NYC": "JFK"}'}
    assert server.post(page, data=form, headers=headers).status_code == 303
    runs = select(DagRun).where(DagRun.dag_id == REPLAY_DAG_ID).order_by(DagRun.id.desc())
    run = database.scalars(runs).first()
    assert (run.conf["set_values"], run.conf["dry_run"]) == ({"NYC": "JFK"}, False)
    boxes = [server.get(page, params=each, headers=headers).text for each in ({}, {"dry_run": False})]
    assert ["name='dry_run' checked" in text for text in boxes] == [True, False], "a trial unless a link says otherwise"
    answer = server.post(page, data={**form, "set_values": "NYC: JFK"}, headers=headers)
    assert (answer.status_code, Form(answer).values["set_values"]) == (400, "NYC: JFK")


def test_a_link_opens_the_form_of_a_backfill_with_the_dates_filled_in(server: TestClient) -> None:
    link = backfill_form_path("flights", first="2013-01-04", last="2013-01-06", reprocess="yes", behavior="completed")
    page = server.get(link, headers=login(server, "ann"))
    form = Form(page)
    assert (page.status_code, form.action) == (200, BACKFILL_PAGE)
    assert (form.values["first"], form.values["last"], form.values["at_once"]) == ("2013-01-04", "2013-01-06", "1")
    assert 'value="completed" selected' in page.text
    assert "checked" in page.text
    assert "unsafe" not in page.headers["content-security-policy"]
    hostile = server.get(backfill_form_path("flights", **dict.fromkeys(BACKFILL, EVIL)), headers=login(server, "ann"))
    assert [(page.status_code, "script" in Form(page).tags) for page in (page, hostile)] == [(200, False)] * 2


def test_sending_the_form_creates_the_backfill_in_the_name_of_the_user(server: TestClient, database: Session) -> None:
    headers = login(server, "bob")
    for framed, leads_to in (("", backfills_path("flights")), ("yes", f"{BACKFILL_PAGE}?framed=yes&created=")):
        answer = server.post(BACKFILL_PAGE, data={**BACKFILL, "framed": framed}, headers=headers)
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"].startswith(leads_to)
        database.expire_all()
        backfill = database.scalars(BACKFILLS).one()
        again = server.post(BACKFILL_PAGE, data=BACKFILL, headers=headers)
        runs = database.scalars(select(DagRun).where(DagRun.id.in_(select(BackfillDagRun.dag_run_id)))).all()
        days = f"{backfill.from_date:%Y-%m-%d %H:%M}", f"{backfill.to_date:%Y-%m-%d}"
        created = (backfill.max_active_runs, backfill.dag_run_conf, backfill.triggering_user_name)
        days_of_runs = [f"{run.logical_date:%Y-%m-%d}" for run in runs]
        database.execute(delete(BackfillDagRun))
        for gone in (*runs, backfill):
            database.delete(gone)
        database.commit()
        assert days == ("2013-01-04 00:00", "2013-01-06")
        assert created == (2, {"reprocess": True}, "bob")
        assert days_of_runs == ["2013-01-04", "2013-01-05", "2013-01-06"]
        assert (again.status_code, "already a running backfill" in again.text) == (400, True)


def test_a_refused_value_is_named_above_the_form_which_keeps_all_values(server: TestClient, database: Session) -> None:
    wrong = {**FORM, "version": "seven"}
    answer = server.post(PAGE, data=wrong, headers=login(server, "bob"))
    assert (answer.status_code, "Invalid input for param version" in answer.text) == (400, True)
    assert Form(answer).values == wrong
    assert "script" not in Form(answer).tags
    for value in ({"first": "soon"}, {"at_once": "x"}, {"behavior": EVIL}, {"last": "2013-01-01"}):
        answer = server.post(BACKFILL_PAGE, data={**BACKFILL, **value}, headers=login(server, "bob"))
        assert (answer.status_code, 'role="alert"' in answer.text, "<script>" in answer.text) == (400, True, False)
    assert database.scalars(BACKFILLS).all() == []


@pytest.mark.parametrize(
    ("user", "headers", "status"),
    [
        ("ann", {}, 403),
        ("eve", {}, 403),
        ("bob", {"Sec-Fetch-Site": "same-site"}, 403),
        ("bob", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("bob", {"Origin": "http://elsewhere.example"}, 403),
        ("bob", {"Origin": "null"}, 403),
        ("bob", {"Sec-Fetch-Site": "same-origin"}, 303),
        ("bob", {"Origin": "http://testserver"}, 303),
    ],
)
def test_who_may_not_and_what_another_site_sends_with_the_cookie_of_a_user_starts_nothing(
    server: TestClient, database: Session, user: str, headers: dict[str, str], status: int
) -> None:
    (token,) = login(server, user).values()
    with_cookie = {"Cookie": f"_token={token.removeprefix('Bearer ')}", **headers}
    before = database.scalars(RUNS).all()
    assert server.post(PAGE, data=FORM, headers=with_cookie).status_code == status
    assert len(database.scalars(RUNS).all()) == len(before) + (status == 303)
    if status == 403:
        assert server.post(BACKFILL_PAGE, data=BACKFILL, headers=with_cookie).status_code == 403
        assert database.scalars(BACKFILLS).all() == []


def test_an_unknown_dag_has_no_form(server: TestClient) -> None:
    for page in (f"{URL_PREFIX}/trigger/nothing", backfill_form_path("nothing")):
        assert server.get(page, headers=login(server, "bob")).status_code == 404
