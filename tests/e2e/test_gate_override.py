"""A refused version in a real Airflow: its Data Docs, and a person who lets it pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx
import pytest

from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER, passwords
from embedded.stack import Stack
from include.cli.facts import table_facts
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, THIRD, RunDay
from tests.e2e.people import APPROVER, answer_all
from tests.support.texts import ODD_TEXTS

pytestmark = pytest.mark.slow

SILVER, GOLD = "silver.overruled_readings", "gold.overruled_totals"
GATE = f"{SILVER}_gate"
DAG_ID = "gate_override"
REASON = "a holiday, " + " ".join(text for text in ODD_TEXTS if "\0" not in text)
"""Text that anything has once been broken by; NUL alone no conf of Airflow takes."""


@pytest.fixture(scope="module")
def refused(api: AirflowApi, start_day: RunDay, lakehouse: Settings) -> Run:
    """The second day of the domain, whose silver version was refused."""
    trials.deliver(lakehouse.landing, "overruled", FIRST, [("a", 1), ("b", 2)])
    assert api.wait_for_run(start_day("overruled", FIRST), PATIENCE_S).state == "success"
    trials.deliver(lakehouse.landing, "overruled", SECOND, [("c", 3), ("d", 4)])
    run = api.wait_for_run(start_day("overruled", SECOND), PATIENCE_S)
    assert run.state == "failed"
    return run


@pytest.fixture(scope="module")
def browser(stack: Stack) -> Iterator[httpx.Client]:
    """Somebody who is logged in as the UI logs them in: by a cookie."""
    login = {"username": USER, "password": passwords(stack.home)[USER]}
    token = httpx.post(f"{stack.address.url}/auth/token", json=login).json()["access_token"]
    with httpx.Client(
        base_url=stack.address.url, cookies={"_token": token}, follow_redirects=True, timeout=200
    ) as client:
        yield client


def refused_version(lakehouse: Settings) -> int:
    version = table_facts(SILVER, lakehouse.root).version
    assert version is not None
    return version


def links(api: AirflowApi, run: Run, task_id: str) -> dict[str, str | None]:
    """The links of a gate's task in the UI."""
    path = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.dag_run_id}/taskInstances/{task_id}/links"
    found: dict[str, str | None] = api.get(path)["extra_links"]
    return found


def data_docs(api: AirflowApi, run: Run, task_id: str) -> str:
    """Where the link to the Data Docs leads."""
    link = links(api, run, task_id)["Data Docs"]
    assert link is not None
    return link


def subject(version: int) -> str:
    return f"Let version {version} of {SILVER} pass, though its gate refused it?"


def ask(api: AirflowApi, version: int) -> Run:
    """Trigger the DAG by Airflow's own form, which names no waiting task."""
    return api.trigger(DAG_ID, {"table": SILVER, "version": version, "reason": REASON})


def ask_by_link(api: AirflowApi, browser: httpx.Client, refused: Run) -> Run:
    """Send the form to which the link of the refused gate leads, after a person has written the reason."""
    form = urlsplit(str(links(api, refused, GATE)["Gate override"]))
    fields = {name: values[0] for name, values in parse_qs(form.query).items()}
    answer = browser.post(form.path, data={**fields, "reason": REASON}, follow_redirects=False)
    assert answer.status_code == httpx.codes.SEE_OTHER, answer.text
    run_id = unquote(answer.headers["location"].rpartition("/")[2])
    (run,) = (run for run in api.runs(DAG_ID) if run.dag_run_id == run_id)
    return run


def events_told(api: AirflowApi) -> list[dict[str, Any]]:
    """What other DAGs were told of the silver table."""
    events = api.get("/api/v2/assets/events", limit=1000, name_pattern=SILVER)["asset_events"]
    return [event["extra"] for event in events if event["name"] == SILVER]


def versions_told(api: AirflowApi) -> list[int]:
    """The versions of it."""
    return [told["version"] for told in events_told(api)]


@pytest.mark.timeout(600)
def test_the_first_line_of_the_refused_gate_says_how_to_let_it_pass_and_its_log_has_the_links(
    api: AirflowApi, refused: Run, lakehouse: Settings, stack: Stack
) -> None:
    first, *rest = api.log(api.task(refused, GATE))
    version = refused_version(lakehouse)
    assert "the link Gate override of this task opens the form" in first
    assert f"lakehouse gate override {SILVER} --version {version}" in first
    form = links(api, refused, GATE)["Gate override"]
    assert form is not None
    assert form.startswith(f"/lakehouse/trigger/gate_override?table={SILVER}&version={version}&task=overruled")
    assert f"Gate override: {stack.address.url}{form}" in rest
    assert f"Data Docs: {stack.address.url}{data_docs(api, refused, GATE)}" in rest
    assert links(api, refused, "bronze.overruled_readings_gate")["Gate override"] is None


@pytest.mark.timeout(600)
def test_its_data_docs_are_one_click_away_for_whoever_is_logged_in(
    api: AirflowApi, refused: Run, browser: httpx.Client
) -> None:
    link = data_docs(api, refused, GATE)
    page = browser.get(link)
    assert page.status_code == httpx.codes.OK, page.text
    assert page.headers["content-type"].startswith("text/html")
    for part in (SILVER, "there are three sensors", "Must have less than or equal to", "Failed"):
        assert part in page.text
    listed = browser.get(str(page.url).rpartition("/")[0] + "/index.html").text
    assert all(f"{table}.html" in listed for table in ("bronze.overruled_readings", SILVER))
    assert browser.get(str(page.url).rpartition("/")[0] + "/bootstrap.min.css").status_code == httpx.codes.OK
    assert browser.get(link).url == page.url, "built once"
    assert browser.get(link.replace(SILVER, GOLD)).status_code == httpx.codes.NOT_FOUND, "it was not judged"


@pytest.mark.timeout(600)
def test_nobody_else_sees_them(api: AirflowApi, refused: Run, browser: httpx.Client) -> None:
    link = data_docs(api, refused, GATE)
    page = str(browser.get(link).url)
    for url in (link, page):
        stranger = httpx.get(str(browser.base_url.join(url)))
        assert stranger.status_code == httpx.codes.UNAUTHORIZED
        assert "three sensors" not in stranger.text
    above = page.rpartition("/")[0]
    for evil in ("..%2f..%2f..%2f..%2freports", "%2e%2e/%2e%2e/lock", "..%5clock"):
        assert browser.get(f"{above}/{evil}").status_code == httpx.codes.NOT_FOUND


@pytest.mark.timeout(600)
def test_a_version_that_cannot_be_overridden_is_not_asked_about(
    api: AirflowApi, refused: Run, lakehouse: Settings
) -> None:
    run = api.wait_for_run(ask(api, refused_version(lakehouse) - 1), PATIENCE_S)
    assert (refused.state, run.state) == ("failed", "failed")
    states = {task.task_id: (task.state, task.try_number) for task in api.tasks(DAG_ID, run.dag_run_id)}
    skipped = dict.fromkeys(("approve", "override", "run_again"), ("upstream_failed", 0))
    assert states == {"refusal": ("failed", 1), **skipped}
    assert "passed its gate: there is nothing to override" in "\n".join(api.log(api.task(run, "refusal")))


@pytest.mark.timeout(600)
def test_after_a_rejection_everything_stays_as_it_is(api: AirflowApi, refused: Run, lakehouse: Settings) -> None:
    before = table_facts(SILVER, lakehouse.root)
    version = refused_version(lakehouse)
    run = ask(api, version)
    assert answer_all(api, run, {subject(version): "Reject"})
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert api.task(run, "override").state == "skipped"
    assert table_facts(SILVER, lakehouse.root) == before
    assert refused.state == "failed"


@pytest.mark.timeout(600)
def test_an_approved_version_is_read_told_of_once_and_passes_its_gate(
    api: AirflowApi, approver: AirflowApi, refused: Run, lakehouse: Settings, browser: httpx.Client
) -> None:
    version, before = refused_version(lakehouse), data_docs(api, refused, GATE)
    assert version not in versions_told(api)
    run = ask_by_link(api, browser, refused)
    (question,) = answer_all(approver, run, {subject(version): "Approve"}).values()
    gate = f"/dags/overruled/runs/{quote(refused.dag_run_id, safe='')}/tasks/{GATE}"
    assert f"]({gate})" in question["body"]
    assert f"]({before})" in question["body"]
    assert "there are three sensors" in question["body"]
    assert f"**{REASON}**" in question["body"]
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    facts = table_facts(SILVER, lakehouse.root)
    assert facts.override is not None
    assert (facts.certified_version, facts.override.by, facts.override.reason) == (version, APPROVER, REASON)
    (overridden,) = (told["overridden"] for told in events_told(api) if told["version"] == version)
    assert REASON in overridden

    # Nobody clears the gate: the run of the override does.
    assert api.task(run, "run_again").state == "success"
    assert api.wait_for_run(refused, PATIENCE_S).state == "success"
    assert api.task(refused, f"{GOLD}_gate").state == "success"
    assert table_facts(GOLD, lakehouse.root).rows == 4
    assert versions_told(api).count(version) == 1, "nobody is told twice"
    assert f"version {version} overridden by {APPROVER}" in "\n".join(api.log(api.task(refused, GATE)))
    assert f"overridden by {APPROVER}" in browser.get(before).text
    assert f"{GOLD}.html" in browser.get(str(browser.get(before).url).rpartition("/")[0] + "/index.html").text


@pytest.mark.timeout(600)
def test_the_next_version_is_judged_by_the_rules_again(
    api: AirflowApi, refused: Run, start_day: RunDay, lakehouse: Settings
) -> None:
    overridden = table_facts(SILVER, lakehouse.root).certified_version
    trials.deliver(lakehouse.landing, "overruled", THIRD, [("e", 5)])
    run = api.wait_for_run(start_day("overruled", THIRD), PATIENCE_S)
    assert (refused.dag_id, run.state) == (run.dag_id, "failed")
    first, *_ = api.log(api.task(run, GATE))
    assert f"Version {overridden} was overridden by {APPROVER}" in first
    assert table_facts(SILVER, lakehouse.root).certified_version == overridden
