"""The form that a link fills in: real requests to Airflow's real API server."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from airflow.models.dagrun import DagRun
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from lakehouse_airflow.operators.waiting_task import WaitingTask
from lakehouse_airflow.ui.links import REPLAY_DAG_ID, URL_PREFIX, form_path, lakehouse_path, table_path
from tests.support.airflow.logins import login

TASK = WaitingTask("flights", "manual__2013-01-05T00:00:00+00:00", "silver.weather_gate")
LINK = form_path("gate_override", TASK, "silver.weather", version=7)
PAGE = f"{URL_PREFIX}/trigger/gate_override"
WAITING = str(TASK)
EVIL = "<script>alert('x')</script>\"'"
FORM = {"table": "silver.weather", "version": "7", "reason": f"a holiday {EVIL}", "task": WAITING}
RUNS = select(DagRun).where(DagRun.dag_id == "gate_override")

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
    page = server.get(LINK, headers=login(server, "bob"))
    assert page.status_code == 200
    form = Form(page)
    assert form.values == {"table": "silver.weather", "version": "7", "reason": "", "task": WAITING}
    assert form.action == "gate_override", "it is sent to this very page"
    assert "script" not in form.tags
    assert "form-action 'self'" in page.headers["content-security-policy"]


def test_without_a_table_of_the_form_none_is_chosen(server: TestClient) -> None:
    for link in (PAGE, f"{PAGE}?table=silver.unknown"):
        assert Form(server.get(link, headers=login(server, "bob"))).values["table"] == ""


def test_sending_the_form_starts_a_run_in_the_name_of_the_user_and_leads_to_it(
    server: TestClient, database: Session
) -> None:
    answer = server.post(PAGE, data=FORM, headers=login(server, "bob"))
    assert answer.status_code == 303, answer.text
    database.expire_all()
    run = database.scalars(RUNS).one()
    assert (
        answer.headers["location"] == f"/dags/gate_override/runs/{run.run_id.replace(':', '%3A').replace('+', '%2B')}"
    )
    assert run.conf == {**FORM, "version": 7}
    assert run.triggering_user_name == "bob"


def test_a_map_of_values_reaches_the_run_as_a_map(server: TestClient, database: Session) -> None:
    page, headers = f"{URL_PREFIX}/trigger/{REPLAY_DAG_ID}", login(server, "bob")
    form = {"table": "silver.flights", "action": "replay rows", "set_how": "map", "set_values": '{"NYC": "JFK"}'}
    assert server.post(page, data=form, headers=headers).status_code == 303
    runs = select(DagRun).where(DagRun.dag_id == REPLAY_DAG_ID).order_by(DagRun.id.desc())
    run = database.scalars(runs).first()
    assert run is not None
    assert run.conf is not None
    assert run.conf["set_values"] == {"NYC": "JFK"}
    answer = server.post(page, data={**form, "set_values": "NYC: JFK"}, headers=headers)
    assert (answer.status_code, Form(answer).values["set_values"]) == (400, "NYC: JFK")


def test_the_form_leads_back_to_its_table_or_to_all_of_them(server: TestClient) -> None:
    headers, lakehouse, table = login(server, "bob"), lakehouse_path("tables"), table_path("silver.weather")
    assert Form(server.get(LINK, headers=headers)).links == ["/", lakehouse, table, table]
    assert Form(server.get(PAGE, headers=headers)).links == ["/", lakehouse, lakehouse]


def test_a_refused_value_is_named_above_the_form_which_keeps_all_values(server: TestClient) -> None:
    answer = server.post(PAGE, data={**FORM, "version": "seven"}, headers=login(server, "bob"))
    assert answer.status_code == 400
    assert "Invalid input for param version" in answer.text
    form = Form(answer)
    assert form.values == {**FORM, "version": "seven"}
    assert "script" not in form.tags


@pytest.mark.parametrize(("user", "status"), [("ann", 403), ("eve", 403)])
def test_who_may_not_trigger_the_dag_starts_nothing(server: TestClient, user: str, status: int) -> None:
    assert server.post(PAGE, data=FORM, headers=login(server, user)).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://testserver"}, 303),
        ({"Origin": "http://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_a_form_that_another_site_sends_with_the_cookie_of_the_user_starts_nothing(
    server: TestClient, database: Session, headers: dict[str, str], status: int
) -> None:
    (token,) = login(server, "bob").values()
    cookie = {"Cookie": f"_token={token.removeprefix('Bearer ')}"}
    before = database.scalars(RUNS).all()
    assert server.post(PAGE, data=FORM, headers={**cookie, **headers}).status_code == status
    assert len(database.scalars(RUNS).all()) == len(before) + (status == 303)


def test_an_unknown_dag_has_no_form(server: TestClient) -> None:
    assert server.get(f"{URL_PREFIX}/trigger/nothing", headers=login(server, "bob")).status_code == 404
