"""The pages of the web UI in a real browser, on a lakehouse that has run two days with trouble in it."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from demo.screenshots.browser import log_in
from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER, passwords
from embedded.stack import Stack
from lakehouse_airflow.ui.links import run_page_path
from millrace.cli.facts import table_facts
from tests.e2e import trials
from tests.e2e.days import FIRST, SECOND, LoadDay
from tests.e2e.pages.conftest import Watched
from tests.e2e.people import APPROVER, READING_S, answer_all, forge_answer, was_refused
from tests.e2e.waiting import ended, wait_for
from tests.support.airflow.stumbles import stumbles

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("refused_run")]

BRONZE, SILVER, THINNED = "bronze.judged_readings", "silver.judged_readings", "silver.thinned_readings"
LAKEHOUSE = "/lakehouse/tables"
REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, [tabindex='0']")]
    .filter(element => element.checkVisibility() && element.type !== "hidden").map(element => element.outerHTML)"""
"""Script: what the keyboard should reach, in its order."""
FOCUSED = """() => {
    const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
    const isInWindow = box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight;
    return [element.outerHTML, isInWindow && style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1];
}"""
"""Script: where the keyboard is, and whether a person sees that."""
TABS = {
    BRONZE: ("Overview", "Versions", "Quality", "Files", "Quarantine", "Storage", "Lineage", "Spec"),
    SILVER: ("Overview", "Versions", "Quality", "Quarantine", "Storage", "Lineage", "Spec"),
}


def opened_from_airflow(person: Page) -> Page:
    """The list of all tables, as the navigation of Airflow opens it: in a tab of its own."""
    person.goto("/")
    person.get_by_role("button", name="Browse").click()
    with person.context.expect_page() as opened:
        person.get_by_role("menuitem", name="Lakehouse").click()
    expect(opened.value).to_have_url(re.compile(f"{LAKEHOUSE}$"))
    person.close()
    return opened.value


def triggered(page: Page, api: AirflowApi) -> Run:
    """Trigger the form of a page, and leave Airflow's page of the run, which would ask for news every few seconds."""
    page.get_by_role("button", name="Trigger").click()
    page.wait_for_url("**/dags/*/runs/*", wait_until="commit")
    dag_id, run_id = (unquote(urlsplit(page.url).path.split("/")[at]) for at in (2, 4))
    page.goto(LAKEHOUSE)
    [run] = [run for run in api.runs(dag_id) if run.dag_run_id == run_id]
    return run


def test_a_refused_row_is_found_fixed_and_replayed(person: Page, api: AirflowApi, approver: AirflowApi) -> None:
    page = opened_from_airflow(person)
    page.get_by_role("table").get_by_role("link", name=BRONZE, exact=True).click()
    for tab in TABS[BRONZE]:
        page.get_by_role("navigation", name=f"About {BRONZE}").get_by_role("link", name=tab, exact=True).click()
        expect(page).to_have_title(f"{BRONZE} · {tab} · Millrace")
        expect(page.get_by_role("heading", level=1)).to_contain_text(BRONZE)

    page.get_by_role("link", name="Quarantine", exact=True).click()
    rows = page.get_by_role("table", name="Rows, the newest batch first")
    row = rows.get_by_role("row").filter(has_text=trials.NO_NEGATIVE).get_by_role("link")
    row_id = row.inner_text()
    row.click()
    fix = {"set_column": "value", "set_how": "set", "set_value": "7", "dry_run": False}
    forged = api.trigger("quarantine_replay", {"table": BRONZE, "ids": row_id, **fix})
    forge_answer(api, forged)
    assert was_refused(api, forged, "replay")
    page.get_by_role("link", name="Fix value").click()

    assert page.get_by_label("Table", exact=True).input_value() == BRONZE
    assert page.get_by_label("Ids").input_value() == row_id
    assert page.get_by_label("Fix column").input_value() == "value"
    page.get_by_label("Value", exact=True).fill("6")
    page.get_by_label("Why").fill("the sensor was upside down")
    page.get_by_label("Dry run").uncheck()
    run = triggered(page, api)
    assert run.dag_id == "quarantine_replay"
    assert answer_all(approver, run, {f"Change 1 quarantined row of {BRONZE}, and replay?": "Approve"})
    assert ended(api, run).state == "success"
    page.goto(f"{LAKEHOUSE}/{BRONZE}/quarantine")
    expect(page.get_by_text("0 rows")).to_be_visible()
    page.get_by_label("Status").select_option("replayed")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name=row_id).click()
    expect(page.get_by_text("the sensor was upside down").first).to_be_visible()


@pytest.fixture(scope="module")
def thinned_run(load_day: LoadDay) -> Run:
    """The second day of the domain `thinned`: its snapshot lacks three sensors of five."""
    assert load_day("thinned", FIRST, [(sensor, 1) for sensor in "abcde"]).state == "success"
    return load_day("thinned", SECOND, [("a", 1), ("b", 2)])


def test_many_deletes_are_allowed_by_another_person_and_then_done(
    person: Page, browser: Browser, stack: Stack, api: AirflowApi, thinned_run: Run
) -> None:
    assert thinned_run.state == "failed"
    person.goto(LAKEHOUSE)
    item = person.get_by_role("region", name="Needs a person").get_by_role("listitem").filter(has_text=THINNED)
    expect(item).to_contain_text("3 of 5 keys (60 %) would be deleted")
    item.get_by_role("link", name="allow the deletes").click()
    person.get_by_label("Reason").fill("a greenhouse was closed")
    asked = triggered(person, api)
    wait_for(lambda: api.get(f"{asked.path}/hitlDetails")["hitl_details"], every_s=1)

    with browser.new_context(base_url=stack.address.url) as of_another_person:
        reviewer = of_another_person.new_page()
        reviewer.goto("/required_actions?response_received=false")
        log_in(reviewer, APPROVER, passwords(stack.home)[APPROVER])
        reviewer.get_by_role("link", name=f"Delete 3 of 5 keys of {THINNED}?").click()
        expect(reviewer.get_by_text("a greenhouse was closed").first).to_be_visible()
        reviewer.wait_for_timeout(READING_S * 1000)
        with reviewer.expect_response(lambda answer: answer.request.method == "PATCH"):
            reviewer.get_by_test_id("hitl-option-Approve").click()

    assert ended(api, asked).state == "success"
    assert ended(api, thinned_run).state == "success", "the stopped task runs again by itself"
    facts = table_facts(THINNED, stack.settings.root)
    assert (facts.deleted, facts.certified_version) == (3, facts.version)
    person.goto(LAKEHOUSE)
    expect(person.get_by_role("region", name="Needs a person")).not_to_contain_text(THINNED)
    person.goto(run_page_path(thinned_run.dag_id, thinned_run.dag_run_id))
    expect(person.get_by_role("row").filter(has_text=THINNED)).to_contain_text("certified")
    person.goto(run_page_path(asked.dag_id, asked.dag_run_id))
    expect(person.get_by_role("row").filter(has_text=THINNED)).to_contain_text("decided")


def test_every_page_can_be_read_by_anybody_in_light_and_dark_wide_and_narrow(person: Page) -> None:
    seen: dict[str, list[str]] = {}
    waiting = [LAKEHOUSE]
    while waiting:
        address = waiting.pop()
        if (path := urlsplit(address).path) in seen or not is_ours(path):
            continue
        person.goto(address)
        seen[path] = stumbles(person)
        waiting += person.locator("a[href]").evaluate_all("links => links.map(link => link.href)")
    assert {f"{LAKEHOUSE}/{table}/{tab.lower()}" for table, tabs in TABS.items() for tab in tabs} <= seen.keys()
    assert {"/lakehouse/trigger/gate_override", "/lakehouse/trigger/quarantine_replay"} <= seen.keys()
    assert [problem for problems in seen.values() for problem in problems] == []


def is_ours(path: str) -> bool:
    """Whether a page is one of Millrace's own, and of a run or table that has had trouble, if it is of any."""
    names = path.split("/")[3:]
    is_own = path.startswith("/lakehouse/") and not path.startswith(("/lakehouse/docs/", "/lakehouse/data-docs/"))
    return is_own and (not names or names[0] in ("judged", *TABS) or path.startswith("/lakehouse/trigger/"))


@pytest.mark.parametrize("path", [LAKEHOUSE, f"{LAKEHOUSE}/{BRONZE}/quarantine", "/lakehouse/trigger/gate_override"])
def test_the_keyboard_reaches_every_link_and_field_in_order_and_shows_where_it_is(person: Page, path: str) -> None:
    person.goto(path)
    expected = person.evaluate(REACHABLE)
    assert len(expected) > 4
    reached = []
    for _ in expected:
        person.keyboard.press("Tab")
        reached.append(person.evaluate(FOCUSED))
    assert [element for element, _ in reached] == expected
    assert [element for element, is_seen in reached if not is_seen] == []


def test_who_is_logged_out_logs_in_and_comes_back(person: Page, context: BrowserContext, stack: Stack) -> None:
    address = f"{LAKEHOUSE}?state=refused&sort=rows"
    person.goto(address)
    context.clear_cookies()
    assert httpx.get(f"{stack.address.url}{address}").status_code == httpx.codes.UNAUTHORIZED
    person.reload()
    expect(person).to_have_url(re.compile(r"/auth/login/?\?next="))
    log_in(person, USER, passwords(stack.home)[USER])
    expect(person).to_have_url(f"{stack.address.url}{address}")
    expect(person.get_by_role("heading", level=1)).to_have_text("Lakehouse")


def test_what_the_policy_forbids_would_be_noticed(person: Page, watched: Watched) -> None:
    person.goto(LAKEHOUSE)
    assert watched.complaints == []
    person.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.1:1/'}))")
    person.evaluate("document.body.append(Object.assign(document.createElement('script'), {textContent: '0'}))")
    person.wait_for_function("document.scripts.length == 1")
    assert ["Content Security Policy" in complaint for complaint in watched.complaints] == [True, True]
    watched.complaints.clear()
    watched.requests.clear()
    person.reload()
