"""Who can read Millrace's pages on Airflow's API server: real requests to its real application."""

from __future__ import annotations

import inspect
import re
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from airflow.plugins_manager import get_plugin_info
from fastapi.testclient import TestClient

from lakehouse_airflow.ui.data_docs import run_folder
from lakehouse_airflow.ui.links import URL_PREFIX
from lakehouse_airflow.ui.web_app import app
from millrace.settings import Settings
from tests.support.airflow.logins import login

PLACE = {
    "dag_id": "shop",
    "run_id": "run",
    "table": "bronze.orders",
    "name": "0123",
    "page": "bronze.orders.html",
    "tab": "overview",
}
GLOSSARY = f"{URL_PREFIX}/docs/glossary.md"
PATHS = [URL_PREFIX + route.path.replace(":path", "").format(**PLACE) for route in app.routes]
ROUTES = [path for path in PATHS if path != f"{URL_PREFIX}/metrics"]
"""All pages; the metrics have a token of their own."""

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}

PAGE = next(route for route in ROUTES if "/pages/" in route)


@pytest.fixture(scope="module", autouse=True)
def built_page(server: TestClient) -> None:
    """One page of the server's lakehouse."""
    page = run_folder(PLACE["dag_id"], PLACE["run_id"], Settings().run_paths) / PLACE["name"] / PLACE["page"]
    page.parent.mkdir(parents=True)
    page.write_text("values of rows")


def test_nobody_reads_a_page_without_a_login_and_the_right_to_it(server: TestClient) -> None:
    headers: list[dict[str, str]] = [{}, {"Authorization": "Bearer forged"}, login(server, "eve")]
    for path in ROUTES:
        assert [server.get(path, headers=each).status_code for each in headers] == [401, 403, 403], path


def test_a_browser_without_a_login_is_led_to_it_and_back_to_the_page(server: TestClient) -> None:
    for path in ROUTES:
        address = f"{path}?reason=a%26b&status=open"
        for cookie in ("", "_token=forged"):
            answer = server.get(address, headers={**BROWSER, "Cookie": cookie})
            assert answer.status_code == 307, path
        form = urlsplit(server.get(answer.headers["location"]).headers["location"])
        assert (form.path, parse_qs(form.query)) == ("/auth/login", {"next": [address]})


def test_a_browser_whose_login_has_expired_is_led_to_it(server: TestClient) -> None:
    expired = get_auth_manager().generate_jwt(
        SimpleAuthManagerUser(username="ann", role="viewer"), expiration_time_in_seconds=-60
    )
    answer = server.get(f"{URL_PREFIX}/tables", headers={**BROWSER, "Cookie": f"_token={expired}"})
    assert (answer.status_code, answer.headers["location"][:27]) == (307, "/api/v2/auth/login?next=%2F")
    assert "_token=;" in answer.headers["set-cookie"].replace('""', "")


def test_a_form_that_was_sent_without_a_login_says_how_to_send_it_again(server: TestClient) -> None:
    answer = server.post(f"{URL_PREFIX}/trigger/gate_override", data={"reason": "long"}, headers=BROWSER)
    assert answer.status_code == 401
    assert "The form was not sent." in answer.text
    assert 'href="/api/v2/auth/login?next=%2F"' in answer.text


def test_a_browser_gets_the_reason_of_a_refusal_as_a_page(server: TestClient) -> None:
    for user, path, status, reason in [
        ("eve", "tables", 403, "Forbidden"),
        ("ann", "tables/bronze.%3Cb%3E", 404, "no spec creates the table bronze.&lt;b&gt;"),
        ("ann", "nothing", 404, "Not Found"),
    ]:
        answer = server.get(f"{URL_PREFIX}/{path}", headers={**BROWSER, **login(server, user)})
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert reason in answer.text


def test_no_answer_lets_a_browser_load_anything_from_elsewhere(server: TestClient) -> None:
    own = {"'none'", "'self'", "'unsafe-inline'"}
    answers = [
        server.request(method, path, headers={**headers, **user}, follow_redirects=False)
        for path in (*PATHS, f"{URL_PREFIX}/nothing", f"{URL_PREFIX}/docs/pictures/flow.svg", GLOSSARY)
        for method in ("GET", "POST")
        for headers in ({}, BROWSER)
        for user in ({}, login(server, "ann"))
    ]
    assert {200, 307, 401, 403, 404, 405} <= {answer.status_code for answer in answers}
    for answer in answers:
        policy = [rule.split() for rule in answer.headers.get("content-security-policy", "").split(";")]
        assert ["default-src", "'none'"] in policy, (answer.status_code, answer.url)
        assert {source for _, *sources in policy for source in sources} <= own
        assert ["frame-ancestors", "'self'"] in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_no_page_about_tables_or_runs_is_made_in_the_event_loop() -> None:
    places = ("/tables", "/lineage", "/runs", "/pages", "/backfill-plan")
    routes = [route for route in app.routes if route.path.startswith(places)]
    assert len(routes) >= 6
    assert [route.path for route in routes if inspect.iscoroutinefunction(route.endpoint)] == []


def test_who_may_edit_the_dag_or_by_a_setting_read_its_logs_reads_its_data_docs(
    server: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting, users in (("editors", {"bob": 200, "ann": 403}), ("log_readers", {"bob": 200, "ann": 200})):
        monkeypatch.setenv("LAKEHOUSE_ROW_VALUES_FOR", setting)
        answers = {user: server.get(PAGE, headers=login(server, user)) for user in users}
        assert {user: answer.status_code for user, answer in answers.items()} == users
        assert answers["bob"].text == "values of rows"


def test_the_menu_leads_to_the_glossary_and_the_glossary_to_the_guides(server: TestClient) -> None:
    views = [view for plugin in get_plugin_info() if plugin["name"] == "millrace" for view in plugin["external_views"]]
    assert [(view.get("category"), view["href"]) for view in views] == [
        ("browse", f"{URL_PREFIX}/tables"),
        (None, f"{URL_PREFIX}/backfill-plan/{{DAG_ID}}?framed=yes"),
        ("docs", GLOSSARY),
        (None, f"{URL_PREFIX}/runs/{{DAG_ID}}/{{RUN_ID}}?frame=1"),
    ]
    glossary = server.get(GLOSSARY, headers=login(server, "ann"))
    assert "<li><strong>certified version</strong>" in glossary.text
    guides = set(re.findall(r'href="([^"#:]+)', glossary.text))
    assert len(guides) > 5
    for guide in guides:
        page = server.get(urljoin(GLOSSARY, guide), headers=login(server, "ann"))
        assert (page.status_code, "<h1>" in page.text) == (200, True), guide
        assert "!-- " not in page.text, guide


def test_a_guide_shows_its_pictures(server: TestClient) -> None:
    address = f"{URL_PREFIX}/docs/guides/see-the-lakehouse.md"
    page = server.get(address, headers=login(server, "ann"))
    pictures = re.findall(r'<img src="([^"]+)"', page.text)
    assert pictures
    answers = [server.get(urljoin(address, picture), headers=login(server, "ann")) for picture in pictures]
    assert {(answer.status_code, answer.headers["content-type"]) for answer in answers} == {(200, "image/png")}
    assert "img-src 'self'" in page.headers["content-security-policy"]


def test_no_other_file_is_documentation(server: TestClient) -> None:
    for page in ("../README.md", "%2e%2e/README.md", "pictures", "", "nothing.md", "/etc/hosts"):
        assert server.get(f"{URL_PREFIX}/docs/{page}", headers=login(server, "ann")).status_code == 404
