"""The pages in a browser, about tables whose names, people, files, rules and rows are long and cannot be broken.

The browser gets each page from the API server of the test; no Airflow runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunType
from fastapi.testclient import TestClient
from playwright.sync_api import Page, Route
from sqlalchemy.orm import Session

from demo.screenshots.browser import NoBrowserError, chromium
from lakehouse_airflow.ui.links import FAILED_KEY, lakehouse_path, run_page_path, table_path
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome
from millrace.settings import Settings
from tests.support.airflow import shown_lakehouse
from tests.support.airflow.logins import login
from tests.support.airflow.shown_runs import SHOP_DAGS, Ended, add_dags, add_run
from tests.support.airflow.stumbles import stumbles
from tests.support.commands import skip_unless_ci
from tests.support.documents.specs import bronze_document, write_specs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ODD = f"Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenfabrik_<b>東京</b>_{'x' * 150}"
TABLE = "bronze.rechtsschutzversicherungsgesellschaften_und_ihre_angestellten"
TABLES = (TABLE, "bronze.orders", "silver.orders", "bronze.bills")
COLUMN = "grundstuecksverkehrsgenehmigungszustaendigkeitsuebertragungsverordnung"
LINEAGE = lakehouse_path("lineage")
RUN = f"manual__2013-01-02T00:00:00+00:00_{'y' * 120}"


@pytest.fixture(scope="module", autouse=True)
def odd_lakehouse(server: TestClient, database: Session, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The lakehouse of the server, where whatever a source or a person can name has an odd name; and a failed run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_TABLES", str(tmp_path_factory.mktemp("specs")))
        patch.setattr(shown_lakehouse, "EVIL", ODD)
        settings = Settings()
        shown_lakehouse.make_shown_lakehouse(settings.root, settings.tables)  # type: ignore[arg-type]
        document = bronze_document(TABLE, owner=ODD, description=ODD)
        column = {COLUMN: {"type": "string", "description": ODD}}
        write_specs(settings.tables, {**document, "columns": {**document["columns"], **column}})
        add_dags(database, tmp_path_factory.mktemp("dags"), SHOP_DAGS)
        broken = TaskResult(outcome=Outcome.BAD_INPUT, message=f"{TABLE}: {ODD}\n{ODD}", table=TABLE)
        ended = {TABLE: Ended("failed", {FAILED_KEY: broken.to_xcom()})}
        add_run(database, "shop", RUN, ended, state=DagRunState.FAILED, kind=DagRunType.MANUAL)
        yield


@pytest.fixture
def person(server: TestClient) -> Iterator[Page]:
    """A page of a browser that gets every page from the server, in the name of a user."""
    headers = {**login(server, "bob"), "Accept": "text/html"}

    def answer(route: Route) -> None:
        page = server.get(route.request.url.removeprefix("http://pages.test"), headers=headers)
        route.fulfill(status=page.status_code, headers=dict(page.headers), body=page.content)

    with ExitStack() as opened:
        try:
            browser = opened.enter_context(chromium())
        except NoBrowserError as error:
            skip_unless_ci(str(error))
        page = browser.new_page(base_url="http://pages.test")
        page.route("**/*", answer)
        yield page


def test_every_page_can_be_read_whatever_its_names_are(person: Page) -> None:
    waiting, seen = [lakehouse_path("tables"), run_page_path("shop", RUN)], dict[str, list[str]]()
    odd_names = 0
    while waiting:
        address = waiting.pop()
        if (path := urlsplit(address).path) in seen or not is_of_interest(path):
            continue
        response = person.goto(address)
        assert response.ok, f"{address} is a dead link"
        seen[path] = stumbles(person)
        odd_names += ODD in person.locator("main").inner_text()
        waiting += person.locator("a[href]").evaluate_all("links => links.map(link => link.href)")
    assert seen.keys() >= {table_path(TABLE, "overview"), table_path("bronze.orders", "quarantine"), LINEAGE}
    assert odd_names > 10
    assert [problem for problems in seen.values() for problem in problems] == []


def is_of_interest(path: str) -> bool:
    """Whether a page is one of Millrace's own, and one of those that have odd names."""
    is_own = path.startswith("/lakehouse/") and not path.startswith("/lakehouse/docs/")
    is_of_another_run = path.startswith("/lakehouse/runs/") and "yyy" not in path
    is_of_another_table = path.startswith("/lakehouse/tables/") and path.split("/")[3] not in TABLES
    return is_own and not is_of_another_run and not is_of_another_table
