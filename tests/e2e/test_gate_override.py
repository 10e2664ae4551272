"""A refused version in a real Airflow: what the gate says, its Data Docs, and a person who lets it pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import httpx
import pytest

from embedded.airflow.api import AirflowApi, Run
from embedded.stack import Stack
from millrace.cli.facts import table_facts
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FOURTH, SECOND, LoadDay
from tests.e2e.people import APPROVER, answer_all
from tests.e2e.waiting import ended
from tests.support.texts import ODD_TEXTS

pytestmark = pytest.mark.slow

SILVER, GOLD = "silver.judged_readings", "gold.judged_totals"
GATE = f"{SILVER}_gate"
DAG_ID = "gate_override"
REASON = "a holiday, " + " ".join(text for text in ODD_TEXTS if "\0" not in text)
"""Text that anything has once been broken by; NUL alone no conf of Airflow takes."""


@pytest.fixture(scope="module")
def browser(stack: Stack, cookies: dict[str, str]) -> Iterator[httpx.Client]:
    """Somebody who is logged in as the UI logs them in: by a cookie."""
    with httpx.Client(base_url=stack.address.url, cookies=cookies, follow_redirects=True, timeout=200) as client:
        yield client


def refused_version(lakehouse: Settings) -> int:
    return table_facts(SILVER, lakehouse.root).version


def links(api: AirflowApi, run: Run, task_id: str) -> dict[str, str | None]:
    """The links of a gate's task in the UI."""
    return api.get(f"{run.path}/taskInstances/{task_id}/links")["extra_links"]


def data_docs(api: AirflowApi, run: Run, task_id: str) -> str:
    """Where the link to the Data Docs leads."""
    return links(api, run, task_id)["Data Docs"]


def subject(version: int) -> str:
    return f"Let version {version} of {SILVER} pass, though its gate refused it?"


def ask_by_link(api: AirflowApi, browser: httpx.Client, refused_run: Run) -> Run:
    """Send the form to which the link of the refused gate leads, after a person has written the reason."""
    form = urlsplit(str(links(api, refused_run, GATE)["Gate override"]))
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


def test_readers_stay_on_the_certified_version_and_the_gate_alone_fails_once(
    api: AirflowApi, refused_run: Run, lakehouse: Settings
) -> None:
    assert refused_run.state == "failed"
    facts = table_facts(SILVER, lakehouse.root)
    assert facts.rows == 5
    assert facts.certified_version < refused_version(lakehouse)
    assert trials.certified_rows(lakehouse, SILVER) == [("a", 1), ("b", 2)]
    states = {task.task_id: (task.state, task.try_number) for task in api.tasks("judged", refused_run.dag_run_id)}
    assert states == {
        "bronze.judged_readings.files": ("success", 1),
        "bronze.judged_readings": ("success", 1),
        "bronze.judged_readings_gate": ("success", 1),
        SILVER: ("success", 1),
        GATE: ("failed", 1),
        GOLD: ("upstream_failed", 0),
        f"{GOLD}_gate": ("upstream_failed", 0),
    }


def test_the_first_line_of_its_log_names_the_rule_and_how_to_let_the_version_pass_and_links_follow(
    api: AirflowApi, refused_run: Run, lakehouse: Settings, stack: Stack
) -> None:
    first, *rest = api.log(api.task(refused_run, GATE))
    version = refused_version(lakehouse)
    assert first.startswith(f"{SECOND}: {SILVER} version {version} refused")
    assert trials.AT_MOST_THREE in first
    assert "there are three sensors" in first
    assert "the link Gate override of this task opens the form" in first
    assert "lakehouse gate override" not in first, "in a stack of two people the command is refused"
    form = links(api, refused_run, GATE)["Gate override"]
    assert form.startswith(f"/lakehouse/trigger/gate_override?table={SILVER}&version={version}&task=judged")
    assert f"Gate override: {stack.address.url}{form}" in rest
    assert f"Data Docs: {stack.address.url}{data_docs(api, refused_run, GATE)}" in rest
    assert links(api, refused_run, "bronze.judged_readings_gate")["Gate override"] is None


def test_its_data_docs_are_one_click_away_for_whoever_is_logged_in(
    api: AirflowApi, refused_run: Run, browser: httpx.Client
) -> None:
    link = data_docs(api, refused_run, GATE)
    page = browser.get(link)
    assert page.status_code == httpx.codes.OK, page.text
    assert page.headers["content-type"].startswith("text/html")
    for part in (SILVER, "there are three sensors", "Must have less than or equal to", "Failed"):
        assert part in page.text
    listed = browser.get(str(page.url).rpartition("/")[0] + "/index.html").text
    assert all(f"{table}.html" in listed for table in ("bronze.judged_readings", SILVER))
    assert browser.get(str(page.url).rpartition("/")[0] + "/bootstrap.min.css").status_code == httpx.codes.OK
    assert browser.get(link).url == page.url, "built once"
    assert browser.get(link.replace(SILVER, GOLD)).status_code == httpx.codes.NOT_FOUND, "it was not judged"


def test_after_a_rejection_everything_stays_as_it_is(api: AirflowApi, refused_run: Run, lakehouse: Settings) -> None:
    before = table_facts(SILVER, lakehouse.root)
    version = refused_version(lakehouse)
    # Airflow's own form names no waiting task.
    run = api.trigger(DAG_ID, {"table": SILVER, "version": version, "reason": REASON})
    assert answer_all(api, run, {subject(version): "Reject"})
    assert ended(api, run).state == "success"
    assert api.task(run, "override").state == "skipped"
    assert table_facts(SILVER, lakehouse.root) == before
    assert refused_run.state == "failed"


def test_an_approved_version_is_read_told_of_once_and_passes_its_gate(
    api: AirflowApi, approver: AirflowApi, refused_run: Run, lakehouse: Settings, browser: httpx.Client
) -> None:
    version, before = refused_version(lakehouse), data_docs(api, refused_run, GATE)
    assert version not in versions_told(api)
    run = ask_by_link(api, browser, refused_run)
    (question,) = answer_all(approver, run, {subject(version): "Approve"}).values()
    gate = f"/dags/judged/runs/{quote(refused_run.dag_run_id, safe='')}/tasks/{GATE}"
    assert f"]({gate})" in question["body"]
    assert f"]({before})" in question["body"]
    assert "there are three sensors" in question["body"]
    assert r"`a holiday, Z\x85rich a\u2028b" in question["body"]
    assert ended(api, run).state == "success"
    facts = table_facts(SILVER, lakehouse.root)
    assert (facts.certified_version, facts.override.by, facts.override.reason) == (version, APPROVER, REASON)
    (overridden,) = (told["overridden"] for told in events_told(api) if told["version"] == version)
    assert REASON in overridden

    # Nobody clears the gate: the run of the override does.
    assert api.task(run, "run_again").state == "success"
    assert ended(api, refused_run).state == "success"
    assert api.task(refused_run, f"{GOLD}_gate").state == "success"
    assert table_facts(GOLD, lakehouse.root).rows == 5
    assert versions_told(api).count(version) == 1, "nobody is told twice"
    assert f"version {version} certified by hand by {APPROVER}" in "\n".join(api.log(api.task(refused_run, GATE)))


def test_the_next_version_is_judged_by_the_rules_again(
    api: AirflowApi, refused_run: Run, load_day: LoadDay, lakehouse: Settings
) -> None:
    overridden = table_facts(SILVER, lakehouse.root).certified_version
    run = load_day("judged", FOURTH, [("g", 7)])
    assert (refused_run.dag_id, run.state) == (run.dag_id, "failed")
    first, *_ = api.log(api.task(run, GATE))
    assert f"Version {overridden} was certified by hand by {APPROVER}" in first
    assert table_facts(SILVER, lakehouse.root).certified_version == overridden
