"""Who can read Millrace's pages on Airflow's API server: real requests to its real application."""

from __future__ import annotations

import inspect
import re
from urllib.parse import urljoin

import pytest
from airflow.plugins_manager import get_plugin_info
from fastapi.testclient import TestClient

from include.settings import Settings
from lakehouse_airflow.ui.data_docs import run_folder
from lakehouse_airflow.ui.links import URL_PREFIX
from lakehouse_airflow.ui.web_app import app
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

PAGE = next(route for route in ROUTES if "/pages/" in route)


@pytest.fixture(scope="module", autouse=True)
def built_page(server: TestClient) -> None:
    """One page of the server's lakehouse."""
    page = run_folder(PLACE["dag_id"], PLACE["run_id"], Settings().run_paths) / PLACE["name"] / PLACE["page"]
    page.parent.mkdir(parents=True)
    page.write_text("values of rows")


@pytest.mark.parametrize("path", ROUTES)
def test_nobody_reads_a_page_without_a_login_and_the_right_to_it(server: TestClient, path: str) -> None:
    assert server.get(path).status_code == 401
    assert server.get(path, headers={"Authorization": "Bearer forged"}).status_code == 403
    assert server.get(path, headers=login(server, "eve")).status_code == 403


def test_no_page_about_tables_runs_in_the_event_loop() -> None:
    routes = [route for route in app.routes if route.path.startswith(("/tables", "/pages", "/backfill-plan"))]
    assert len(routes) >= 5
    assert [route.path for route in routes if inspect.iscoroutinefunction(route.endpoint)] == []


def test_a_user_who_may_read_the_dags_task_logs_reads_its_pages(server: TestClient) -> None:
    answer = server.get(PAGE, headers=login(server, "ann"))
    assert (answer.status_code, answer.text) == (200, "values of rows")


def test_the_menu_leads_to_the_glossary_and_the_glossary_to_the_guides(server: TestClient) -> None:
    views = [view for plugin in get_plugin_info() if plugin["name"] == "millrace" for view in plugin["external_views"]]
    assert [(view.get("category"), view["href"]) for view in views] == [
        (None, f"{URL_PREFIX}/tables"),
        (None, f"{URL_PREFIX}/backfill-plan/{{DAG_ID}}?framed=yes"),
        ("docs", GLOSSARY),
    ]
    glossary = server.get(GLOSSARY, headers=login(server, "ann"))
    assert "<td><strong>certified version</strong></td>" in glossary.text
    guides = set(re.findall(r'href="([^"#:]+)', glossary.text))
    assert len(guides) > 5
    for guide in guides:
        page = server.get(urljoin(GLOSSARY, guide), headers=login(server, "ann"))
        assert (page.status_code, "<h1>" in page.text) == (200, True), guide


@pytest.mark.parametrize("page", ["../README.md", "%2e%2e/README.md", "pictures", "", "nothing.md", "/etc/hosts"])
def test_no_other_file_is_documentation(server: TestClient, page: str) -> None:
    assert server.get(f"{URL_PREFIX}/docs/{page}", headers=login(server, "ann")).status_code == 404
